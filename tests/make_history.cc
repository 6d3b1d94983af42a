// SPDX-License-Identifier: Apache-2.0
//
// Generator of summaries of many synthetic runs, with the sums that a history of them must have.
//
//   make_history DIR RUNS RANKS KERNELS [hostile]
//
// Half of the runs are of engine version v1, the later half of v2, a day apart. Planted: in run 1
// one rank computes 15 % longer than the others, and from v2 on one kernel takes 30 % longer per
// call. `hostile` gives kernels and stages hostile names. The sums go to standard output
// as JSON; they are made here, of the same cells, in 128 bits.
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "base/file.h"
#include "base/json.h"
#include "fleet/summary/summary_file.h"
#include "results/duration_histogram.h"

namespace {

using namespace gpuwhy;

struct Plan {
  std::int64_t runs = 0;
  std::int64_t ranks = 0;
  std::int64_t kernels = 0;
  bool is_hostile = false;

  std::int64_t slow_rank() const { return ranks * 137 / 250; }
  std::int64_t slow_kernel() const { return kernels * 42 / 500; }
  std::string kernel_name(std::int64_t kernel) const {
    const std::vector<std::string> hostile = {
        "'; DROP TABLE gpuwhy.kernels; --",
        std::string("nul\0byte", 8),
        "line\nbreak\ttab\\n\\0 back\\slash",
        "\x1b[31mred\xff\xfe",
        std::string(100'000, 'x'),
        "{x:String} %27 ${HOME} \"quotes\" `ticks`",
    };
    const auto index = static_cast<std::size_t>(kernel);
    return is_hostile && index < hostile.size()
               ? hostile[index]
               : fmt::format("void gemm_{}<float, {}>(Params)", kernel, kernel * 7);
  }
  std::string stage_name(bool is_prefill) const {
    return is_hostile && is_prefill ? "pre'fill\n\\" : is_prefill ? "prefill" : "decode";
  }
};

// Repeats itself and looks like nothing: the middle bits of a multiplication.
std::int64_t noise(std::int64_t a, std::int64_t b, std::int64_t c, std::int64_t below) {
  std::uint64_t x = static_cast<std::uint64_t>(a) * 0x9e3779b97f4a7c15ULL ^
                    static_cast<std::uint64_t>(b) * 0xc2b2ae3d27d4eb4fULL ^
                    static_cast<std::uint64_t>(c) * 0x165667b19e3779f9ULL;
  x ^= x >> 29;
  x *= 0xbf58476d1ce4e5b9ULL;
  return static_cast<std::int64_t>((x >> 20) % static_cast<std::uint64_t>(below));
}

struct Sums {
  std::int64_t rows = 0;
  std::int64_t calls = 0;
  unsigned __int128 total_ns = 0;
  std::map<int, std::int64_t> histogram;
  std::map<std::string, std::int64_t> part_ns;
};

KernelSums make_cell(const Plan& plan, std::int64_t run, std::int64_t rank, std::int64_t kernel,
                     bool is_prefill) {
  KernelSums cell;
  cell.stage = plan.stage_name(is_prefill);
  cell.kernel = plan.kernel_name(kernel);
  cell.family = kernel % 2 == 0 ? "gemm" : "elementwise";
  double ns = 3'000.0 + 500'000.0 / static_cast<double>(kernel + 3) + (is_prefill ? 20'000.0 : 0.0);
  ns *= run >= plan.runs / 2 && kernel == plan.slow_kernel() ? 1.30 : 1.0;
  ns *= run == 1 && rank == plan.slow_rank() ? 1.15 : 1.0;
  cell.calls = 3 + noise(run, rank, kernel, 5);
  for (std::int64_t call = 0; call < cell.calls; ++call) {
    const auto duration_ns = static_cast<std::int64_t>(
        ns * (0.98 + 0.0004 * static_cast<double>(noise(call + run * 31, rank, kernel, 100))));
    cell.min_ns = call == 0 ? duration_ns : std::min(cell.min_ns, duration_ns);
    cell.max_ns = std::max(cell.max_ns, duration_ns);
    cell.total_ns += duration_ns;
    ++cell.histogram[bin_of(duration_ns)];
  }
  return cell;
}

RankSummary make_summary(const Plan& plan, std::int64_t run, std::int64_t rank, Sums& sums) {
  RankSummary summary;
  RankIdentity& identity = summary.identity;
  identity.run_id = fmt::format("run-{:03}", run);
  identity.rank = rank;
  identity.num_ranks = plan.ranks;
  identity.node = fmt::format("node-{:03}", rank / 8);
  identity.gpu = "NVIDIA H100 80GB HBM3";
  identity.model = plan.is_hostile ? "mo'del\n" : "llama_3_1_8b";
  identity.engine = "generated";
  identity.engine_version = run < plan.runs / 2 ? "v1" : "v2";
  identity.started_unix_s = 1'767'225'600 + run * 86'400 + rank;  // from 2026-01-01 on
  for (const bool is_prefill : {true, false}) {
    StageSums stage;
    stage.stage = plan.stage_name(is_prefill);
    stage.instances = 10;
    for (std::int64_t kernel = 0; kernel < plan.kernels; ++kernel) {
      KernelSums cell = make_cell(plan, run, rank, kernel, is_prefill);
      stage.kernel_ns += cell.total_ns;
      ++sums.rows;
      sums.calls += cell.calls;
      sums.total_ns += static_cast<std::uint64_t>(cell.total_ns);
      for (const auto& [step, count] : cell.histogram) {
        sums.histogram[step] += count;
      }
      summary.kernels.push_back(std::move(cell));
    }
    // A rank's noise in calls is not what makes a straggler.
    const double slow = run == 1 && rank == plan.slow_rank() ? 1.15 : 1.0;
    const auto compute_ns = static_cast<std::int64_t>(1e9 * slow) + noise(run, rank, 7, 10'000'000);
    stage.window_ns = 2'000'000'000;
    stage.total_ns = stage.window_ns;
    stage.tokens = is_prefill ? 5120 : 10;
    stage.buckets_ns[0] = compute_ns;
    stage.buckets_ns[1] = stage.window_ns - compute_ns;
    stage.peak_flops = 2'000'000'000 * std::int64_t{989'000'000};  // large: sums overflow 64 bits
    stage.model_flops = stage.peak_flops / (3 + run % 3);
    summary.stages.push_back(stage);
  }
  for (const char* part : {"qkv", "attention", "down"}) {
    const std::int64_t time_ns = 1'000'000 + noise(run, rank, part[0], 1'000'000);
    summary.parts.push_back({"forward", "layer", part, 10, 320, time_ns});
    sums.part_ns[part] += time_ns;
  }
  return summary;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 5) {
    fmt::print(stderr, "make_history DIR RUNS RANKS KERNELS [hostile]\n");
    return 2;
  }
  const Plan plan{std::atoll(argv[2]), std::atoll(argv[3]), std::atoll(argv[4]), argc > 5};
  Sums sums;
  for (std::int64_t run = 0; run < plan.runs; ++run) {
    const auto folder = std::filesystem::path(argv[1]) / fmt::format("run-{:03}", run);
    std::filesystem::create_directories(folder);
    for (std::int64_t rank = 0; rank < plan.ranks; ++rank) {
      write_file(folder / fmt::format("rank-{:04}.gpuwhy", rank),
                 summary_bytes(make_summary(plan, run, rank, sums)));
    }
  }
  Json truth = {{"rows", sums.rows},
                {"calls", sums.calls},
                {"total_ns", fmt::format("{}", sums.total_ns)},
                {"slow_run", "run-001"},
                {"slow_rank", plan.slow_rank()},
                {"slow_kernel", plan.kernel_name(plan.slow_kernel())}};
  truth["part_ns"] = sums.part_ns;
  for (const auto& [step, count] : sums.histogram) {
    truth["histogram"][fmt::format("{}", step)] = count;
  }
  fmt::print("{}", to_json_text(truth));
  return 0;
}
