// SPDX-License-Identifier: Apache-2.0
//
// A simulation of serving engines: hosts that launch, GPUs that work through what was launched.
#include "analysis/engine_trace.h"

#include <algorithm>

#include <fmt/format.h>

#include "trace_builder.h"

namespace gpuwhy {
namespace {

constexpr std::int64_t kUs = 1000;
constexpr std::int64_t kLaunchNs = 4 * kUs;   // of an API call
constexpr std::int64_t kLatencyNs = 3 * kUs;  // from a call to the start of its work
constexpr std::int64_t kGapNs = kUs / 2;      // between kernels of a stream

// One kernel or copy of a step, the same for all workers of a replica.
struct Planned {
  const char* name;  // nullptr: a copy
  std::int64_t duration_ns;
  bool is_comm = false;
  bool is_sampling = false;  // logits and what follows
};

class Simulation {
 public:
  Simulation(const EngineShape& shape, std::mt19937* noise) : shape_(shape), noise_(noise) {}

  EngineTrace run() {
    EngineTrace made;
    for (int i = 0; i < shape_.num_replicas; ++i) {
      made.replicas.push_back(run_replica(i));
    }
    if (noise_ != nullptr) {
      builder_.shuffle(*noise_);
    }
    made.trace = builder_.finish();
    return made;
  }

 private:
  struct Worker {
    std::uint32_t thread = 0;
    std::uint32_t stream = 0;
    std::uint32_t other_thread = 0;  // marks nothing
    std::uint32_t other_stream = 0;
    std::int64_t host_ns = 0;  // how far the host has come
    std::int64_t gpu_ns = 0;   // when the GPU is free
    std::int64_t marker_start_ns = 0;
    std::int64_t marker_end_ns = 0;
    std::vector<std::uint32_t> calls;       // correlation by planned row
    std::vector<std::int64_t> launched_ns;  // by planned row
    std::vector<std::int64_t> ends_ns;      // of the GPU's work, by step
  };

  bool happens(unsigned one_in) { return noise_ != nullptr && (*noise_)() % one_in == 0; }

  Replica run_replica(int number) {
    Replica replica;
    std::vector<Worker> workers(static_cast<std::size_t>(shape_.num_workers));
    for (std::size_t i = 0; i < workers.size(); ++i) {
      Worker& worker = workers[i];
      const std::uint16_t process = builder_.add_process();
      const std::uint16_t device = builder_.add_device();
      worker.thread = builder_.add_thread(process);
      worker.stream = builder_.add_stream(process, device);
      worker.other_thread = builder_.add_thread(process);
      worker.other_stream = builder_.add_stream(process, device);
      // Workers are not quite simultaneous, replicas not at all.
      worker.host_ns = 100 * kUs + static_cast<std::int64_t>(i) * kUs + number * 37 * kUs;
      replica.pids.push_back(process + 1);
      replica.devices.push_back(fmt::format("cuda:{}", device));
      if (shape_.has_startup) {
        start_up(worker);
      }
    }
    for (int step = 0; step < shape_.num_steps; ++step) {
      run_step(number, step, workers, replica);
    }
    for (std::size_t i = 1; i < replica.steps.size(); ++i) {
      EngineStep& before = replica.steps[i - 1];
      before.period_ns = replica.steps[i].gpu_start_ns - before.gpu_start_ns;
    }
    for (const Worker& worker : workers) {
      if (shape_.has_idle_tail) {
        const std::int64_t end_ns = std::max(worker.host_ns, worker.gpu_ns) + 900 * kUs;
        builder_.call(worker.thread, worker.host_ns, end_ns, "cudaDeviceSynchronize");
      }
    }
    return replica;
  }

  // Weights are copied and filled in; no kernel of the model runs.
  void start_up(Worker& worker) {
    for (int i = 0; i < 3; ++i) {
      const std::uint32_t copy = call(worker, kLaunchNs, "cudaMemcpyAsync");
      worker.gpu_ns = std::max(worker.gpu_ns, worker.host_ns) + kLatencyNs;
      builder_.copy(worker.stream, worker.gpu_ns, worker.gpu_ns + 80 * kUs, copy,
                    CopyKind::kHostToDevice);
      worker.gpu_ns += 80 * kUs;
      const std::uint32_t fill = call(worker, kLaunchNs, "cudaLaunchKernel");
      builder_.kernel(worker.stream, worker.gpu_ns + kGapNs, worker.gpu_ns + 5 * kUs,
                      "vectorized_elementwise_kernel", fill);
      worker.gpu_ns += 5 * kUs;
    }
    builder_.call(worker.thread, worker.host_ns, worker.gpu_ns, "cudaDeviceSynchronize");
    worker.host_ns = worker.gpu_ns + 50 * kUs;
  }

  std::uint32_t call(Worker& worker, std::int64_t duration_ns, const char* name) {
    const std::uint32_t correlation =
        happens(40)
            ? TraceBuilder::kNoCall
            : builder_.call(worker.thread, worker.host_ns, worker.host_ns + duration_ns, name);
    worker.host_ns += duration_ns + kUs;
    return correlation;
  }

  // The work of a step. A prompt makes every kernel longer, and so does a first use.
  std::vector<Planned> plan(std::int64_t factor) const {
    std::vector<Planned> work;
    for (int layer = 0; layer < shape_.num_layers; ++layer) {
      work.push_back({"nvjet_tst_128x64", 30 * kUs * factor});
      work.push_back({"flash_fwd_splitkv_kernel", 20 * kUs * factor});
      if (shape_.num_workers > 1) {
        work.push_back({"ncclDevKernel_AllReduce_Sum_bf16_RING_LL", 6 * kUs * factor, true});
      }
    }
    work.push_back({"nvjet_tst_256x128_lm_head", 25 * kUs, false, true});
    work.push_back({"sampling_topk_topp_kernel", 5 * kUs, false, true});
    work.push_back({nullptr, 2 * kUs, false, true});
    return work;
  }

  std::string marker(bool is_mixed, std::int64_t prompt, std::int64_t batch) const {
    if (shape_.is_sglang) {
      return is_mixed ? fmt::format(
                            "step[MIXED bs={} c=1 g={} c_sq={} c_sk={} c_sqsq={} c_sqsk={} "
                            "g_sq={} g_sk={} g_sqsq={} g_sqsk={}]",
                            batch + 1, batch, prompt, prompt, prompt * prompt, prompt * prompt,
                            batch, batch * 500, batch, batch * 500)
                      : fmt::format("step[DECODE bs={} g_sq={}]", batch, batch);
    }
    return fmt::format("execute_context_{}({})_generation_{}({})", is_mixed ? 1 : 0,
                       is_mixed ? prompt : 0, batch, batch);
  }

  void run_step(int replica_number, int number, std::vector<Worker>& workers, Replica& replica) {
    const bool is_mixed = shape_.mixed_every > 0 && number % shape_.mixed_every == 1;
    const bool is_warm_up = number < shape_.num_warm_up;
    // Batches change as requests come and go, so that they distinguish replicas.
    const std::int64_t batch = 16 + 8 * replica_number + number % 3;
    const std::int64_t prompt = is_mixed ? 256 + 64 * replica_number : 0;
    const std::vector<Planned> work = plan((is_mixed ? 3 : 1) * (is_warm_up ? 4 : 1));
    // Prompts are of any length, so no graph fits them.
    const bool has_graph = shape_.has_graphs && !is_mixed;

    EngineStep step;
    step.stage = is_mixed ? "mixed" : "decode";
    step.tokens = prompt + batch;
    step.sequences = batch + (is_mixed ? 1 : 0);
    step.is_warm_up = is_warm_up;
    for (Worker& worker : workers) {
      launch(worker, work, number, has_graph, is_warm_up);
    }
    run_on_gpus(workers, work, has_graph, step);
    const std::string text = marker(is_mixed, prompt, batch);
    for (std::size_t i = 0; i < workers.size(); ++i) {
      Worker& worker = workers[i];
      worker.ends_ns.push_back(step.gpus[i].end_ns);
      if (shape_.depth == 0) {
        wait(worker, step.gpus[i].end_ns, "cudaStreamSynchronize");
        if (!shape_.samples_after_marker) {
          worker.marker_end_ns = worker.host_ns;  // the answer is read within the step
        }
      }
      worker.host_ns += kUs;
      if (happens(30) || (shape_.lacks_first_marker && number == 0 && i + 1 == workers.size())) {
        continue;
      }
      const bool is_left_open = number + 1 == shape_.num_steps && happens(4);
      builder_.range(worker.thread, worker.marker_start_ns,
                     is_left_open ? kOpenEnd : worker.marker_end_ns, text);
    }
    step.host_start_ns = workers[0].marker_start_ns;
    step.host_end_ns = workers[0].marker_end_ns;
    replica.steps.push_back(std::move(step));
  }

  // Until work that ends at `end_ns` is done.
  void wait(Worker& worker, std::int64_t end_ns, const char* call) {
    const std::int64_t return_ns = std::max(worker.host_ns, end_ns) + kUs;
    builder_.call(worker.thread, worker.host_ns, return_ns, call);
    worker.host_ns = return_ns + 2 * kUs;
  }

  // The host's part: waits for an earlier step, opens the marker, prepares, launches.
  void launch(Worker& worker, const std::vector<Planned>& work, int number, bool has_graph,
              bool is_warm_up) {
    if (shape_.depth > 0 && number > shape_.depth) {
      wait(worker, worker.ends_ns[static_cast<std::size_t>(number - 1 - shape_.depth)],
           "cudaEventSynchronize");
    }
    worker.marker_start_ns = worker.host_ns;
    worker.host_ns += shape_.prepare_ns;
    worker.calls.clear();
    worker.launched_ns.clear();
    bool is_closed = false;
    for (std::size_t row = 0; row < work.size(); ++row) {
      const Planned& one = work[row];
      if (one.is_sampling && shape_.samples_after_marker && !is_closed) {
        worker.marker_end_ns = worker.host_ns;
        worker.host_ns += 2 * kUs;
        is_closed = true;
      }
      const bool is_in_graph = has_graph && !one.is_sampling;
      if (is_in_graph && row > 0) {
        worker.launched_ns.push_back(worker.launched_ns.back());
        worker.calls.push_back(worker.calls.back());
        continue;
      }
      worker.launched_ns.push_back(worker.host_ns + kLatencyNs);
      // A first launch loads its module, and blocks.
      worker.calls.push_back(call(worker, kLaunchNs * (is_warm_up && row == 0 ? 20 : 1),
                                  is_in_graph           ? "cudaGraphLaunch"
                                  : one.name == nullptr ? "cudaMemcpyAsync"
                                                        : "cudaLaunchKernel"));
    }
    if (!is_closed) {
      worker.marker_end_ns = worker.host_ns;
    }
    if (happens(6)) {
      add_stranger(worker);
    }
  }

  // The GPUs' part: each works in order, and all meet where they communicate.
  void run_on_gpus(std::vector<Worker>& workers, const std::vector<Planned>& work, bool has_graph,
                   EngineStep& step) {
    step.gpus.resize(workers.size());
    for (std::size_t row = 0; row < work.size(); ++row) {
      const Planned& one = work[row];
      std::vector<std::int64_t> starts_ns;
      for (const Worker& worker : workers) {
        starts_ns.push_back(std::max(worker.gpu_ns + kGapNs, worker.launched_ns[row]));
      }
      const std::int64_t last_start_ns = *std::max_element(starts_ns.begin(), starts_ns.end());
      for (std::size_t i = 0; i < workers.size(); ++i) {
        Worker& worker = workers[i];
        GpuTimes& gpu = step.gpus[i];
        const std::int64_t start_ns = starts_ns[i];
        const std::int64_t end_ns = (one.is_comm ? last_start_ns : start_ns) + one.duration_ns;
        worker.gpu_ns = end_ns;
        gpu.start_ns = row == 0 ? start_ns : gpu.start_ns;
        gpu.end_ns = end_ns;
        gpu.work_ns += end_ns - start_ns;
        if (happens(25)) {
          continue;  // the profiler lost it
        }
        if (one.name == nullptr) {
          builder_.copy(worker.stream, start_ns, end_ns, worker.calls[row],
                        CopyKind::kDeviceToHost);
        } else {
          builder_.kernel(worker.stream, start_ns, end_ns, one.name, worker.calls[row],
                          {.is_graph_node = has_graph && !one.is_sampling});
          ++step.num_kernels;
        }
      }
    }
    step.gpu_start_ns = INT64_MAX;
    std::int64_t end_ns = 0;
    for (const GpuTimes& gpu : step.gpus) {
      step.gpu_start_ns = std::min(step.gpu_start_ns, gpu.start_ns);
      end_ns = std::max(end_ns, gpu.end_ns);
      step.gpu_work_ns = std::max(step.gpu_work_ns, gpu.work_ns);
    }
    step.gpu_window_ns = end_ns - step.gpu_start_ns;
  }

  // Work that is not the step's own: another thread of the process launches a kernel, or the worker
  // copies on another stream.
  void add_stranger(Worker& worker) {
    const bool is_copy = happens(2);
    const std::uint32_t launched = builder_.call(is_copy ? worker.thread : worker.other_thread,
                                                 worker.host_ns, worker.host_ns + kUs);
    worker.host_ns += 2 * kUs;
    const std::int64_t start_ns = worker.host_ns + static_cast<std::int64_t>((*noise_)() % 200'000);
    if (is_copy) {
      builder_.copy(worker.other_stream, start_ns, start_ns + 50 * kUs, launched);
    } else {
      builder_.kernel(worker.other_stream, start_ns, start_ns + 20 * kUs, "elementwise", launched);
    }
  }

  const EngineShape& shape_;
  std::mt19937* noise_;
  TraceBuilder builder_;
};

}  // namespace

EngineTrace make_engine_trace(const EngineShape& shape, std::mt19937* noise) {
  return Simulation(shape, noise).run();
}

EngineShape random_engine(std::mt19937& random) {
  const auto pick = [&](int least, int most) {
    return std::uniform_int_distribution<int>(least, most)(random);
  };
  EngineShape shape;
  shape.depth = pick(0, 2);
  shape.num_workers = pick(0, 20) == 0 ? 8 : 1 << pick(0, 1);
  shape.num_replicas = pick(0, 3) == 0 ? 2 : 1;
  shape.num_steps = pick(1, 5);
  shape.num_warm_up = pick(0, 1);
  shape.mixed_every = pick(0, 3);
  shape.num_layers = 1;
  shape.samples_after_marker = pick(0, 1) == 0;
  shape.has_graphs = pick(0, 1) == 0;
  shape.is_sglang = pick(0, 1) == 0;
  shape.has_startup = pick(0, 3) == 0;
  shape.has_idle_tail = pick(0, 3) == 0;
  shape.prepare_ns = pick(1, 200) * 1000;
  return shape;
}

}  // namespace gpuwhy
