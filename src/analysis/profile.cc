// SPDX-License-Identifier: Apache-2.0
//
// The analysis pipeline, as a list of steps. Each reads the trace and earlier results, and adds its
// part.
//
// profile() needs only the recording, so a run can plan its ncu pass from it. complete() adds what
// later passes and other files provide, and ends with the findings, which read everything else.
// Every command and the library use these two functions, so they cannot disagree about a file.
#include "analysis/profile.h"

#include <cstdlib>
#include <exception>
#include <functional>
#include <future>
#include <utility>

#include <fmt/format.h>

#include "analysis/capture_summary.h"
#include "analysis/kernels.h"
#include "analysis/ledger.h"
#include "analysis/operator_rates.h"
#include "analysis/part_costs.h"
#include "analysis/possible_marks.h"
#include "analysis/ranges.h"
#include "analysis/recovered_steps.h"
#include "analysis/slow_layers.h"
#include "analysis/slow_passes.h"
#include "analysis/stage_summary.h"
#include "analysis/steady_work.h"
#include "analysis/steps.h"
#include "analysis/stream_overlap.h"
#include "base/run_tasks.h"
#include "base/text.h"

namespace gpuwhy {
namespace {

// Runs a step and records its time under `name`.
template <typename Step>
auto timed(PassTimer* timer, const char* name, Step&& step) {
  const PassTimer::Scope pass(timer, name);
  return step();
}

// Tensor core specifications by device name, from the table of GPUs.
std::function<std::optional<TensorCores>(const std::string&)> tensor_cores_in(
    const std::function<std::vector<GpuSpec>()>& gpus) {
  return [gpus](const std::string& device) -> std::optional<TensorCores> {
    const GpuMatch match = find_gpu(gpus(), device);
    if (!match.gpu) {
      return std::nullopt;
    }
    const double fp32 = match.gpu->flops_per_s("fp32").value_or(0);
    const bool has_bf16 = match.gpu->dense_tflops.contains("bf16");
    const double tensor = match.gpu->flops_per_s(has_bf16 ? "bf16" : "fp16").value_or(0);
    const int compute_major = std::atoi(match.gpu->compute_capability.c_str());
    return fp32 > 0 ? std::optional(TensorCores{tensor / fp32, has_bf16, compute_major})
                    : std::nullopt;
  };
}

// Bandwidth of NVLink in one direction by device name, from the table of GPUs.
std::function<std::optional<double>(const std::string&)> links_in(
    const std::function<std::vector<GpuSpec>()>& gpus) {
  return [gpus](const std::string& device) -> std::optional<double> {
    const GpuMatch match = find_gpu(gpus(), device);
    return match.gpu && match.gpu->nvlink_gb_per_s
               ? std::optional(*match.gpu->nvlink_gb_per_s * 1e9 / 2)
               : std::nullopt;
  };
}

// The GPU for the model's minimum cost: the recorded one, or else the machine's.
GpuMatch gpu_for_model(const Evidence& evidence, const Analysis& analysis) {
  const std::string recorded = gpu_name_of(analysis);
  return recorded.empty() ? find_gpu(evidence.gpus(), evidence.machine_gpu)
                          : find_gpu(evidence.gpus(), recorded, gpu_attributes_of(analysis));
}

// The GPU that rates are compared with: only where all are of one kind.
GpuMatch gpu_for_rates(const Evidence& evidence, const Analysis& analysis) {
  const std::string name = gpu_name_of(analysis);
  for (const DeviceRow& device : analysis.devices) {
    if (device.num_kernels > 0 && device.name != name) {
      return {std::nullopt, "the GPUs of the recording differ", {}};
    }
  }
  return gpu_for_model(evidence, analysis);
}

void take_ledgers(LedgerResult ledgers, Analysis& analysis) {
  analysis.ledgers = std::move(ledgers.stages);
  analysis.ledgers.insert(analysis.ledgers.end(), ledgers.phases.begin(), ledgers.phases.end());
  analysis.ledgers.insert(analysis.ledgers.end(), ledgers.capture.begin(), ledgers.capture.end());
  analysis.ledger_history = std::move(ledgers.history);
  analysis.stage_overlap_ns = ledgers.overlap_ns;
  analysis.outside_ns = ledgers.outside_ns;
}

// Steps that run at the same time. Each measures itself with a timer of its own; the times are
// listed in the order in which the steps were added.
class Tasks {
 public:
  explicit Tasks(PassTimer* timer) : timer_(timer) {}

  void add(std::function<void(PassTimer*)> task) { tasks_.push_back(std::move(task)); }

  void run(unsigned num_threads) {
    std::vector<PassTimer> timers(tasks_.size(),
                                  timer_ == nullptr ? PassTimer() : timer_->beside());
    std::vector<std::function<void()>> calls;
    calls.reserve(tasks_.size());
    for (std::size_t i = 0; i < tasks_.size(); ++i) {
      calls.emplace_back(
          [this, i, &timers] { tasks_[i](timer_ == nullptr ? nullptr : &timers[i]); });
    }
    run_tasks(calls, num_threads);
    for (std::size_t i = 0; timer_ != nullptr && i < timers.size(); ++i) {
      timer_->append(timers[i]);
    }
  }

 private:
  PassTimer* timer_;
  std::vector<std::function<void(PassTimer*)>> tasks_;
};

// Something that tasks wait for. Where it fails, they fail with it.
class Milestone {
 public:
  template <typename Step>
  void reach(Step step) {
    try {
      step();
      promise_.set_value();
    } catch (...) {
      promise_.set_exception(std::current_exception());
      throw;
    }
  }

  // Only in tasks that are added after the one that reaches it.
  void wait() const { reached_.get(); }

 private:
  std::promise<void> promise_;
  std::shared_future<void> reached_ = promise_.get_future().share();
};

// Which stage launched each piece of work.
struct Launched {
  Extent extent;
  RankGroups groups;
  std::vector<StepWindow> windows;
};

Launched find_launched(const IsCommunication& is_communication, const Parallelism& parallelism,
                       PassTimer* timer, Profile& profile) {
  const Trace& trace = *profile.trace;
  Stages& stages = profile.stages;
  Attribution& attribution = profile.attribution;
  Analysis& analysis = profile.analysis;

  // Stages: where prefill and decode are.
  const Extent of_work = extent_of(trace);
  stages = find_stages(trace, profile.rules, of_work.start_ns, of_work.end_ns);
  const Extent extent = with_marks(of_work, trace, stages);
  analysis.capture_start_ns = extent.start_ns;
  analysis.capture_ns = extent.end_ns - extent.start_ns;
  analysis.stage_source = stages.source;
  analysis.engine = stages.engine;
  analysis.diagnostics.insert(analysis.diagnostics.end(), stages.notes.begin(), stages.notes.end());

  // Ranks of one model: their marks repeat each other, and each step counts once.
  RankGroups groups = find_rank_groups(trace, stages, is_communication, parallelism);
  {
    const Stages counted = counted_stages(trace, stages, groups);
    analysis.stages = summarise_stages(counted);
    analysis.stage_times = time_stages(counted);
  }

  // Attribution: which stage launched each kernel.
  attribution = timed(timer, "attribute", [&] { return attribute(trace, stages); });
  add_orphans(attribution.kernels, trace.kernels.size(), analysis.diagnostics);
  add_joined(attribution, analysis.diagnostics);
  std::vector<StepWindow> windows =
      timed(timer, "step windows", [&] { return find_step_windows(trace, stages, attribution); });
  return {extent, std::move(groups), std::move(windows)};
}

// What the ledger needs of the steps before it.
struct LedgerNeeds {
  const Trace& trace;
  const KernelFamilies& families;
  const Launched& launched;
  const IsCommunication& is_communication;
};

// Ledger, whose gaps go to the timeline if one is made, and the steps, which have its times.
void add_ledgers(const LedgerNeeds& needs, const ProfileOptions& options, TimelineMaker* maker,
                 PassTimer* timer, Profile& profile) {
  const Trace& trace = needs.trace;
  const Extent& extent = needs.launched.extent;
  Analysis& analysis = profile.analysis;

  // Gaps between kernels, for the timeline and for late tokens.
  const GapSink to_timeline = maker != nullptr ? maker->gap_sink() : GapSink();
  GapSink on_gap = to_timeline;
  if (options.has_requests) {
    profile.long_gaps.resize(trace.devices.size());
    on_gap = [&](std::size_t device, GapCause cause, std::int64_t start_ns, std::int64_t end_ns) {
      if (end_ns - start_ns >= kLeastGapNs) {
        profile.long_gaps[device].push_back({start_ns, end_ns, cause.bucket});
      }
      if (to_timeline) {
        to_timeline(device, cause, start_ns, end_ns);
      }
    };
  }

  // From here on the buckets of every ledger sum to its window.
  LedgerResult ledgers = timed(timer, "ledger", [&] {
    return make_ledgers({trace, profile.stages, profile.attribution, needs.launched.windows,
                         needs.is_communication, extent.start_ns, extent.end_ns,
                         model_kernels(trace, needs.families), on_gap});
  });
  analysis.devices = summarise_devices(trace, ledgers.busy_ns, analysis.capture_ns);

  // Steps: host range, GPU window and period of each.
  timed(timer, "steps", [&] {
    analysis.steps = find_steps(trace, profile.stages, needs.launched.groups,
                                needs.launched.windows, ledgers.own_ns);
    analysis.steady_window = mark_steady(profile.stages.names, analysis.steps);
    analysis.rank_groups = summarise_groups(trace, needs.launched.groups, analysis.steps);
  });
  take_ledgers(std::move(ledgers), analysis);
}

// A window by time cuts passes at its ends, and layers that are left of one look like a whole
// model. Several passes of the same number of layers do not.
bool is_cut_too_short(const Trace& trace, const Structure& structure) {
  constexpr std::size_t kWholeModel = 3;  // passes
  std::size_t num_passes = 0;
  for (const KernelStream& stream : structure.streams) {
    num_passes = std::max(num_passes, stream.passes.size());
  }
  return trace.capture.window && trace.capture.window->is_by_time && structure.is_found() &&
         num_passes < kWholeModel;
}

// Recovers the model and its slow passes and layers. Returns the part of each kernel.
std::vector<std::uint32_t> add_structure(const KernelFamilies& families, Profile& profile) {
  const Trace& trace = *profile.trace;
  Analysis& analysis = profile.analysis;
  profile.structure = find_structure(trace, families);
  if (is_cut_too_short(trace, profile.structure)) {
    profile.structure = {};
    profile.structure.reason =
        "the window holds fewer than three passes, and one that is cut at its ends looks like a model "
        "with fewer layers; choose a longer one, or whole steps with --steps";
  }
  std::vector<std::uint32_t> parts;
  analysis.structure = summarise_structure(trace, families, profile.structure, parts);
  analysis.structure->slow_passes =
      find_slow_passes(trace, profile.structure, *analysis.structure, parts);
  analysis.structure->slow_layers =
      find_slow_layers(trace, profile.structure, *analysis.structure, parts);
  if (profile.structure.is_found()) {
    recover_steps(trace, profile.structure, *analysis.structure);
  }
  return parts;
}

// Compares the model with the marks. Returns maps of its layers for the timeline.
std::vector<LayerMap> finish_structure(bool has_timeline, std::int64_t start_ns,
                                       std::vector<std::uint32_t> parts, Profile& profile) {
  StructureSummary& summary = *profile.analysis.structure;
  if (profile.structure.is_found()) {
    compare_with_marks(profile.structure, profile.stages, profile.attribution, summary);
  }
  std::vector<LayerMap> maps;
  if (has_timeline) {
    maps = map_layers(*profile.trace, profile.structure, summary, parts, start_ns);
  }
  if (profile.structure.is_found()) {
    profile.kernel_parts = std::move(parts);
  }
  return maps;
}

}  // namespace

Profile profile(Recording recording, Rules rules, const ProfileOptions& options) {
  const PassTimer::Scope whole(options.timer, "analyze");
  Profile profile;
  profile.rules = std::move(rules);
  if (const auto* summary = std::get_if<KernelSummary>(&recording)) {
    profile.analysis = analyze_summary(*summary, profile.rules);
    return profile;
  }
  profile.trace = std::move(std::get<Trace>(recording));
  const Trace& trace = *profile.trace;
  Stages& stages = profile.stages;
  Attribution& attribution = profile.attribution;
  Analysis& analysis = profile.analysis;
  analysis.capture = trace.capture;
  analysis.diagnostics = trace.diagnostics;
  analysis.diagnostics.insert(analysis.diagnostics.end(), profile.rules.notes.begin(),
                              profile.rules.notes.end());

  const KernelFamilies families(trace, profile.rules);
  const IsCommunication is_communication = communication_kernels(trace, families);

  // The steps below read the trace and the results of those that they wait for, and each writes
  // fields of its own: they run at the same time, the longest chain first.
  std::optional<Launched> launched;
  std::vector<SteadyWindow> steady;
  std::vector<std::uint32_t> parts;
  std::vector<LayerMap> layer_maps;
  Milestone attributed;
  Milestone modelled;
  std::optional<TimelineMaker> maker;
  Milestone begun;  // the timeline
  Diagnostics of_ranges;
  Diagnostics of_streams;
  Tasks tasks(options.timer);
  tasks.add([&](PassTimer* timer) {
    const auto find_all = [&] {
      attributed.reach([&] {
        launched.emplace(find_launched(is_communication, options.parallelism, timer, profile));
      });
    };
    if (options.has_timeline) {
      begun.reach([&] {
        find_all();  // inside: where it fails, what waits for the timeline fails too
        timed(timer, "timeline", [&] {
          maker.emplace(trace, families, stages, attribution, launched->windows,
                        launched->extent.start_ns, launched->extent.end_ns, options.picture);
        });
      });
    } else {
      find_all();
    }
    add_ledgers({trace, families, *launched, is_communication}, options, maker ? &*maker : nullptr,
                timer, profile);
    steady = steady_windows(trace, analysis.ledgers);
    analysis.kernel_chains = timed(timer, "kernel chains", [&] {
      return find_kernel_chains(trace, families, stages, attribution, steady);
    });
  });
  tasks.add([&](PassTimer* timer) {
    // The model is found in the order of kernels alone.
    modelled.reach([&] {
      if (trace.kernels.size() > 0) {
        timed(timer, "structure", [&] { parts = add_structure(families, profile); });
      }
    });
  });
  if (options.has_timeline) {
    tasks.add([&](PassTimer* timer) {
      begun.wait();
      timed(timer, "slices", [&] { maker->add_work(); });
    });
  }
  tasks.add([&](PassTimer* timer) {
    attributed.wait();
    // Groups of equal launches, and their sums in the kernel table. From here on the times of the
    // stages and `outside` sum to kernel_ns.
    timed(timer, "kernels", [&] {
      const LaunchTallies tallies = tally_launches(trace, stages, attribution);
      analysis.launch_groups = group_launches(trace, families, stages, tallies);
      summarise_kernels(trace, families, stages, attribution, tallies, analysis);
    });
    // Framework operators behind the kernels.
    analysis.operators = timed(timer, "operators", [&] {
      return summarise_operators(trace, stages, attribution, analysis.kernel_ns);
    });
  });
  tasks.add([&](PassTimer* timer) {
    attributed.wait();
    // Kernels launched by each NVTX range.
    analysis.ranges =
        timed(timer, "ranges", [&] { return summarise_ranges(trace, attribution, &of_ranges); });
    analysis.host_phases = find_host_phases(analysis.ranges, stages.engine);
  });
  tasks.add([&](PassTimer* timer) {
    attributed.wait();
    // The time that each stage launched.
    add_kernel_time(trace, stages, attribution, analysis.stages);
    // The model and the marks.
    modelled.wait();
    if (trace.kernels.size() > 0) {
      layer_maps = timed(timer, "layers", [&] {
        return finish_structure(options.has_timeline, launched->extent.start_ns, std::move(parts),
                                profile);
      });
    }
  });
  tasks.add([&](PassTimer* timer) {
    timed(timer, "counts", [&] {
      // How many kernels of CUDA graphs the names above include.
      if (const GraphNames names = count_graph_names(trace); names.num_kernels > 0) {
        analysis.graph_names = names;
      }
      analysis.copies = summarise_copies(trace);
      analysis.num_calls = static_cast<std::int64_t>(trace.api_calls.size());
      analysis.num_numbered_calls = count_numbered_calls(trace);
      analysis.num_captured_launches = static_cast<std::int64_t>(trace.captured_launches.size());
      add_overlaps(trace, of_streams);
    });
  });
  tasks.run(options.num_threads);

  // What needs the results of several of them.
  for (const Diagnostics& found : {of_ranges, of_streams}) {
    analysis.diagnostics.insert(analysis.diagnostics.end(), found.begin(), found.end());
  }
  for (RangeTotal& range : analysis.ranges) {
    range.longest_start_ns -= range.longest_ns > 0 ? analysis.capture_start_ns : 0;
  }
  analysis.possible_marks =
      possible_marks(stages, analysis.ranges, analysis.kernel_ns - analysis.opaque_graph_ns);
  timed(options.timer, "steady phase",
        [&] { measure_steady(trace, stages, attribution, steady, analysis); });
  if (maker) {
    profile.timeline = timed(options.timer, "timeline", [&] { return maker->finish(); });
  }
  profile.timeline.layer_maps = std::move(layer_maps);
  if (profile.structure.is_found()) {
    add_disagreement(*analysis.structure, analysis.diagnostics);
  }
  return profile;
}

void complete(Profile& profile, Evidence evidence, PassTimer* timer) {
  Analysis& analysis = profile.analysis;
  analysis.diagnostics.insert(analysis.diagnostics.end(), evidence.diagnostics.begin(),
                              evidence.diagnostics.end());

  // Hardware counters.
  if (evidence.counters) {
    timed(timer, "counters", [&] { join_counters(*evidence.counters, evidence.gpus(), analysis); });
  }

  // Operator names from the program, if the recording has none.
  if (!analysis.operators) {
    analysis.operators = std::move(evidence.operators);
  }

  // Rates of matrix products relative to the GPU's peak.
  if (analysis.operators && !analysis.operators->rates.products.empty() && evidence.gpus) {
    add_peak_fractions(gpu_for_rates(evidence, analysis), analysis.operators->rates.products);
  }

  // Times without a profiler, and the profiler's overhead.
  analysis.baseline = std::move(evidence.baseline);
  analysis.overheads = overheads_of(analysis.baseline, analysis.stage_times);

  // Efficiency relative to the model's minimum cost on this GPU.
  if (evidence.model) {
    timed(timer, "efficiency", [&] {
      if (!evidence.model->gpu.gpu && evidence.model->gpu.reason.empty()) {
        evidence.model->gpu = gpu_for_model(evidence, analysis);
      }
      const std::string mismatch = model_mismatch(analysis, evidence.model->llm);
      if (!mismatch.empty()) {
        evidence.model->llm.no_cost_reason = mismatch;
        analysis.diagnostics.push_back(
            {std::string(kModelMismatch), Severity::kWarning, 1,
             fmt::format("MFU, MBU and the speed of light are n/a for {}: {}",
                         printable(evidence.model->model_name), mismatch)});
      }
      analysis.efficiency = efficiency_of(analysis, *evidence.model);
      if (mismatch.empty()) {
        add_part_costs(*evidence.model, analysis);
      } else if (analysis.structure) {
        analysis.structure->cost_reason = mismatch;
      }
    });
  }

  // Tokens per second of recovered decode steps.
  if (analysis.structure && evidence.batch) {
    add_recovered_rate(*evidence.batch, *analysis.structure);
  }

  // Steps by their number of sequences.
  const bool has_costs = evidence.model && evidence.model->llm.no_cost_reason.empty();
  analysis.compositions = find_compositions(analysis, has_costs ? &*evidence.model : nullptr);

  // Requests of clients, joined to the steps that served them.
  if (evidence.requests && profile.trace) {
    timed(timer, "requests", [&] {
      profile.requests = join_requests(*profile.trace, profile.stages, analysis, profile.long_gaps,
                                       std::move(evidence.requests->requests));
      analysis.requests =
          summarise_requests(*profile.requests, evidence.requests->limits, analysis);
    });
  }

  // Findings.
  if (evidence.gpus) {
    evidence.facts.tensor_cores = tensor_cores_in(evidence.gpus);
    evidence.facts.link_bytes_per_s = links_in(evidence.gpus);
  }
  analysis.findings = find_findings(analysis, evidence.facts);
}

}  // namespace gpuwhy
