// SPDX-License-Identifier: Apache-2.0
//
// Generator of rank summaries of a synthetic job, with what a merge of them must find.
//
//   make_ranks DIR RANKS [--per-node N] [--kernels N] [--steps N] [--name-length N] [--run ID]
//              [--skip RANK]
//
// A step is its kernels, a collective of the node, and one of all ranks; a tenth of the steps are
// prefill, the rest decode. Three things are planted: one rank whose kernels are all slow, one node
// whose kernels are all a little slow, and one kernel that is slow on every sixteenth rank, as when
// a tuner chose badly there. Ranks wait for each other in collectives as they do in life: a
// collective ends for all of them one transfer after the last arrival, and every rank's clock
// begins somewhere else. What was planted goes to standard output as JSON, with the waiting and the
// transfer summed up by the simulation itself.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "base/file.h"
#include "bundle/layout.h"
#include "compare/statistics.h"
#include "fleet/summary/summary_file.h"
#include "results/duration_histogram.h"

namespace {

using namespace gpuwhy;

constexpr double kSlowRank = 1.30;
constexpr double kSlowNode = 1.12;
constexpr double kSlowKernel = 1.60;
constexpr double kNoise = 0.01;
constexpr std::int64_t kTransferNs = 40'000;

struct Job {
  std::int64_t num_ranks = 0;
  std::int64_t per_node = 8;
  std::int64_t num_kernels = 300;
  std::int64_t num_steps = 100;
  std::size_t name_length = 230;
  std::string run = "20260101-000000";
  std::int64_t skipped = -1;

  std::int64_t slow_rank() const { return num_ranks * 137 / 1000; }
  std::int64_t slow_node() const { return num_ranks / per_node * 7 / 10; }
  std::int64_t slow_kernel() const { return 42 % num_kernels; }
  std::int64_t num_prefill() const { return std::max<std::int64_t>(num_steps / 10, 1); }
  double factor(std::int64_t rank, std::int64_t kernel) const {
    const double of_rank = rank == slow_rank()              ? kSlowRank
                           : rank / per_node == slow_node() ? kSlowNode
                                                            : 1.0;
    return of_rank * (kernel == slow_kernel() && rank % 16 == 3 ? kSlowKernel : 1.0);
  }
  // Long names, as templates have them.
  std::string name(std::int64_t kernel) const {
    std::string text = fmt::format("void kernel_{:03}<", kernel);
    while (text.size() + 3 < name_length) {
      text += fmt::format("Tile<{}, {}>, ", text.size() % 97, kernel % 13);
    }
    return text + "int>(Params)";
  }
};

// Large ones are rare, as in a real table.
std::int64_t base_ns(std::int64_t kernel, bool is_prefill) {
  const std::int64_t decode_ns = 2'000 + 400'000 / (kernel % 150 + 4);
  return is_prefill ? decode_ns * 8 : decode_ns;
}

struct Rank {
  RankSummary summary;
  std::int64_t step_ns[2] = {0, 0};  // compute of a prefill and of a decode step
};

// Without `has_cells` only the times of steps, from the same numbers.
Rank make_rank(const Job& job, std::int64_t rank, const std::vector<std::string>& names,
               bool has_cells) {
  SteadyRandom random(static_cast<std::uint64_t>(rank) * 1'000'003 + 17);
  Rank made;
  made.summary.identity = {job.run,
                           rank,
                           job.num_ranks,
                           0,
                           fmt::format("node-{:05}", rank / job.per_node),
                           "NVIDIA H100 80GB HBM3",
                           "llama_3_1_8b",
                           "generated",
                           "1.0",
                           "550.54",
                           "0.1.0",
                           1'767'225'600,
                           "generated",
                           0,
                           "generated"};
  for (const bool is_prefill : {true, false}) {
    const std::int64_t calls = is_prefill ? job.num_prefill() : job.num_steps - job.num_prefill();
    for (std::int64_t kernel = 0; kernel < job.num_kernels; ++kernel) {
      KernelSums cell;
      cell.stage = is_prefill ? "prefill" : "decode";
      cell.kernel = has_cells ? names[static_cast<std::size_t>(kernel)] : "";
      cell.family = kernel % 3 == 0 ? "gemm" : kernel % 3 == 1 ? "attention" : "elementwise";
      const double mean = static_cast<double>(base_ns(kernel, is_prefill)) *
                          job.factor(rank, kernel) * (1 + kNoise * random.normal());
      cell.calls = calls;
      cell.min_ns = INT64_MAX;
      auto bin = cell.histogram.end();  // durations grow from call to call, and so do their bins
      for (std::int64_t call = 0; call < calls; ++call) {
        const double spread = 0.8 + 0.4 * static_cast<double>(call) / static_cast<double>(calls);
        const auto duration_ns = static_cast<std::int64_t>(mean * spread);
        cell.total_ns += duration_ns;
        cell.min_ns = std::min(cell.min_ns, duration_ns);
        cell.max_ns = std::max(cell.max_ns, duration_ns);
        if (has_cells) {
          if (bin == cell.histogram.end() || bin->first != bin_of(duration_ns)) {
            bin = cell.histogram.emplace_hint(cell.histogram.end(), bin_of(duration_ns), 0);
          }
          ++bin->second;
        }
      }
      made.step_ns[is_prefill ? 0 : 1] += cell.total_ns / std::max<std::int64_t>(calls, 1);
      if (has_cells) {
        made.summary.kernels.push_back(std::move(cell));
      }
    }
  }
  return made;
}

// What the merge has to say of waiting and transfer.
struct Truth {
  std::int64_t transfer_ns = 0;  // one a collective and rank
  std::int64_t total_ns = 0;
};

class Simulation {
 public:
  Simulation(const Job& job, std::vector<Rank>& ranks)
      : job_(job), ranks_(ranks), clock_ns_(ranks.size()) {}

  Truth run() {
    std::vector<std::size_t> all(ranks_.size());
    for (std::size_t i = 0; i < all.size(); ++i) {
      all[i] = i;
    }
    for (std::int64_t step = 0; step < job_.num_steps; ++step) {
      const bool is_prefill = step < job_.num_prefill();
      for (std::size_t i = 0; i < ranks_.size(); ++i) {
        clock_ns_[i] += ranks_[i].step_ns[is_prefill ? 0 : 1];
      }
      for (std::size_t first = 0; first < ranks_.size();) {
        std::size_t last = first;
        while (last < ranks_.size() && node_of(last) == node_of(first)) {
          ++last;
        }
        meet({all.begin() + static_cast<std::ptrdiff_t>(first),
              all.begin() + static_cast<std::ptrdiff_t>(last)},
             fmt::format("node-{:05}", node_of(first)), step, is_prefill);
        first = last;
      }
      meet(all, "world", step, is_prefill);
    }
    return truth_;
  }

  std::int64_t clock_ns(std::size_t i) const { return clock_ns_[i]; }

 private:
  std::int64_t node_of(std::size_t i) const {
    return ranks_[i].summary.identity.rank / job_.per_node;
  }

  void meet(const std::vector<std::size_t>& members, const std::string& communicator,
            std::int64_t sequence, bool is_prefill) {
    std::int64_t last_ns = 0;
    for (const std::size_t i : members) {
      last_ns = std::max(last_ns, clock_ns_[i]);
    }
    const std::int64_t end_ns = last_ns + kTransferNs;
    for (const std::size_t i : members) {
      // Its recording began at some other moment than the others'.
      const std::int64_t arrival_ns = clock_ns_[i] + 1'000'000 * static_cast<std::int64_t>(i % 977);
      ranks_[i].summary.collectives.push_back(
          {communicator, sequence, is_prefill ? "prefill" : "decode", "ncclDevKernel_AllReduce",
           arrival_ns, end_ns - clock_ns_[i]});
      truth_.total_ns += end_ns - clock_ns_[i];
      truth_.transfer_ns += kTransferNs;
      clock_ns_[i] = end_ns;
    }
  }

  const Job& job_;
  std::vector<Rank>& ranks_;
  std::vector<std::int64_t> clock_ns_;
  Truth truth_;
};

// The collectives as kernels, and the stages around it all.
void close(const Job& job, Rank& rank) {
  RankSummary& summary = rank.summary;
  for (const bool is_prefill : {true, false}) {
    StageSums stage;
    stage.stage = is_prefill ? "prefill" : "decode";
    stage.instances = is_prefill ? job.num_prefill() : job.num_steps - job.num_prefill();
    KernelSums cell{{stage.stage, "ncclDevKernel_AllReduce", "communication"},
                    {0, 0, INT64_MAX, 0}};
    for (const CollectiveRow& call : summary.collectives) {
      if (call.stage == stage.stage) {
        ++cell.calls;
        cell.total_ns += call.duration_ns;
        cell.min_ns = std::min(cell.min_ns, call.duration_ns);
        cell.max_ns = std::max(cell.max_ns, call.duration_ns);
        ++cell.histogram[bin_of(call.duration_ns)];
      }
    }
    const std::int64_t compute_ns = rank.step_ns[is_prefill ? 0 : 1] * stage.instances;
    stage.total_ns = compute_ns + cell.total_ns;
    stage.min_ns = stage.total_ns / std::max<std::int64_t>(stage.instances, 1);
    stage.max_ns = stage.min_ns;
    stage.tokens = stage.instances * (is_prefill ? 512 : 1);
    stage.kernel_ns = stage.total_ns;
    stage.window_ns = stage.total_ns;
    stage.buckets_ns[static_cast<std::size_t>(Bucket::kCompute)] = compute_ns;
    stage.buckets_ns[static_cast<std::size_t>(Bucket::kComm)] = cell.total_ns;
    stage.peak_flops = stage.total_ns / 1000 * 989'000'000;
    stage.model_flops = stage.peak_flops / 3;
    summary.stages.push_back(stage);
    summary.kernels.push_back(cell);
  }
}

Job job_of(int argc, char** argv) {
  Job job;
  job.num_ranks = std::atoll(argv[2]);
  for (int i = 3; i + 1 < argc; i += 2) {
    const std::string option = argv[i];
    const std::string value = argv[i + 1];
    if (option == "--per-node") {
      job.per_node = std::stoll(value);
    } else if (option == "--kernels") {
      job.num_kernels = std::stoll(value);
    } else if (option == "--steps") {
      job.num_steps = std::stoll(value);
    } else if (option == "--name-length") {
      job.name_length = std::stoull(value);
    } else if (option == "--run") {
      job.run = value;
    } else if (option == "--skip") {
      job.skipped = std::stoll(value);
    }
  }
  return job;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) {
    fmt::print(stderr, "make_ranks DIR RANKS [OPTIONS]\n");
    return 2;
  }
  const Job job = job_of(argc, argv);
  std::vector<std::string> names;
  for (std::int64_t kernel = 0; kernel < job.num_kernels; ++kernel) {
    names.push_back(job.name(kernel));
  }
  // Twice: what a rank's kernels took decides how long all others wait.
  std::vector<Rank> ranks;
  for (std::int64_t rank = 0; rank < job.num_ranks; ++rank) {
    ranks.push_back(make_rank(job, rank, names, false));
  }
  const Truth truth = Simulation(job, ranks).run();
  std::uintmax_t bytes = 0;
  for (Rank& rank : ranks) {
    const std::int64_t number = rank.summary.identity.rank;
    if (number == job.skipped) {
      continue;
    }
    rank.summary.kernels = make_rank(job, number, names, true).summary.kernels;
    close(job, rank);
    const auto folder = std::filesystem::path(argv[1]) / fmt::format("rank-{:06}", number);
    std::filesystem::create_directories(folder);
    const std::string file = summary_bytes(rank.summary);
    write_file(folder / layout::kSummary, file);
    bytes += file.size();
    rank = {};
  }
  fmt::print(
      "{{\"run_id\": \"{}\", \"ranks\": {}, \"slow_rank\": {}, \"slow_node\": \"node-{:05}\", "
      "\"slow_kernel\": \"{}\", \"collective_ns\": {}, \"transfer_ns\": {}, \"bytes\": {}}}\n",
      job.run, job.num_ranks, job.slow_rank(), job.slow_node(), job.name(job.slow_kernel()),
      truth.total_ns, truth.transfer_ns, bytes);
  return 0;
}
