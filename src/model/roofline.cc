// SPDX-License-Identifier: Apache-2.0
//
// Classification of a kernel by its bottleneck: memory, compute, latency or launch overhead.
//
// A kernel is bound by the ceiling it is nearest to or, if it is near none, by what keeps it away.
// In order: a launch that is shorter than the launch overhead and does not fill the GPU once is
// launch bound, whatever its counters say. One that reaches 60 % of a ceiling is bound by it; if it
// reaches both, by the higher. Below that, warps that mostly wait, or too few of them, make it
// latency bound. The rest has warps to issue and reaches no ceiling: it is assigned to the nearer
// one, and its fraction is shown.
//
// The profiler's compute fraction refers to the busiest pipe at its fastest rate. A tensor pipe
// that accumulates in FP32 on a GeForce reaches only half of that, so FLOPs over the table's peak
// may be higher; the larger of the two counts. What it gets wrong: kernels that alternate between
// phases look like neither.
#include "model/roofline.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>
#include <utility>

#include <fmt/format.h>

namespace gpuwhy {
namespace {

std::optional<double> ratio(const std::optional<double>& above,
                            const std::optional<double>& below) {
  return above && below && *below > 0 ? std::optional(*above / *below) : std::nullopt;
}

std::optional<double> per_second(const std::optional<double>& amount,
                                 const std::optional<double>& duration_ns) {
  return amount && duration_ns && *duration_ns > 0 ? std::optional(*amount / (*duration_ns / 1e9))
                                                   : std::nullopt;
}

// "fp16/bf16" has the roof of either.
std::optional<double> roof_of(const GpuRoofs& roofs, const std::string& dtype) {
  const auto at = roofs.flops_per_s.find(dtype.substr(0, dtype.find('/')));
  return at == roofs.flops_per_s.end() ? std::nullopt : std::optional(at->second);
}

std::string percent(double fraction) {
  return fmt::format("{:.1f} %", fraction * 100);
}

// The memory level with the largest fraction of its ceiling.
void find_memory_level(const RooflineInput& input, Roofline& result) {
  const std::pair<const char*, const std::optional<double>*> levels[] = {
      {"dram", &input.dram_fraction}, {"l2", &input.l2_fraction}, {"l1", &input.l1_fraction}};
  for (const auto& [name, fraction] : levels) {
    if (*fraction && (!result.memory_fraction || **fraction > *result.memory_fraction)) {
      result.memory_fraction = *fraction;
      result.memory_level = name;
    }
  }
}

bool is_launch_bound(const RooflineInput& input, const BoundThresholds& thresholds) {
  const auto duration_ns =
      input.workload_duration_ns ? input.workload_duration_ns : input.duration_ns;
  return duration_ns && *duration_ns < thresholds.launch_ns && input.waves &&
         *input.waves < thresholds.launch_waves;
}

std::string launch_reason(const RooflineInput& input) {
  return fmt::format(
      "{:.1f} us long, {:.2f} waves of blocks",
      (input.workload_duration_ns ? *input.workload_duration_ns : *input.duration_ns) / 1000,
      *input.waves);
}

std::string latency_reason(const RooflineInput& input, const BoundThresholds& thresholds) {
  if (input.no_eligible_fraction && *input.no_eligible_fraction > thresholds.no_eligible_fraction) {
    return fmt::format("no warp could issue in {} of cycles", percent(*input.no_eligible_fraction));
  }
  if (input.theoretical_occupancy_fraction &&
      *input.theoretical_occupancy_fraction < thresholds.occupancy_fraction) {
    return fmt::format("its launch allows {} of an SM's warps",
                       percent(*input.theoretical_occupancy_fraction));
  }
  return "";
}

// "; warps waited for global memory (long_scoreboard) 62.1 %, for a barrier (barrier) 14.0 %": the
// two largest reasons that are worth a look.
std::string stall_reason(const RooflineInput& input) {
  constexpr std::size_t kMostNamed = 2;
  constexpr double kLeastFraction = 0.10;
  std::string text;
  for (std::size_t i = 0; i < std::min(kMostNamed, input.stalls.size()); ++i) {
    const StallReason& stall = input.stalls[i];
    if (stall.fraction >= kLeastFraction) {
      text += fmt::format("{}for {} {}", text.empty() ? "; warps waited " : ", ",
                          stall_words(stall.name), percent(stall.fraction));
    }
  }
  return text;
}

// The order matters: a kernel too short to fill the GPU would otherwise pass for memory-bound.
void classify(const RooflineInput& input, const BoundThresholds& thresholds, Roofline& result) {
  if (is_launch_bound(input, thresholds)) {
    result.bound = BoundBy::kLaunch;
    result.reason = launch_reason(input);
    return;
  }
  if (!result.sol_fraction()) {
    result.reason = "n/a (no throughput counters)";
    return;
  }
  const double memory = result.memory_fraction.value_or(0);
  const double compute = result.compute_fraction.value_or(0);
  const std::string reached =
      fmt::format("{} {} and compute {} of their ceilings",
                  result.memory_level.empty() ? "memory" : result.memory_level,
                  result.memory_fraction ? percent(memory) : "n/a",
                  result.compute_fraction ? percent(compute) : "n/a");
  // Far from both ceilings neither of them is the limit.
  if (*result.sol_fraction() < thresholds.roof_fraction) {
    const std::string waiting = latency_reason(input, thresholds);
    result.bound = BoundBy::kLatency;
    result.reason = reached + (waiting.empty() ? "" : "; " + waiting) + stall_reason(input);
    return;
  }
  result.bound = memory >= compute ? BoundBy::kMemory : BoundBy::kCompute;
  result.reason = reached;
}

}  // namespace

const char* bound_name(BoundBy bound) {
  static constexpr std::array kNames = {"n/a", "memory", "compute", "latency", "launch"};
  static_assert(kNames.size() == static_cast<std::size_t>(BoundBy::kLaunch) + 1);
  return kNames[static_cast<std::size_t>(bound)];
}

std::string stall_words(const std::string& name) {
  // After ncu's own descriptions of its warp states.
  static constexpr std::pair<std::string_view, std::string_view> kWords[] = {
      {"long_scoreboard", "global or local memory"},
      {"short_scoreboard", "shared memory or special functions"},
      {"barrier", "other warps at a barrier"},
      {"membar", "a memory fence"},
      {"math_pipe_throttle", "a busy math pipe"},
      {"tensor_throttle", "a busy tensor pipe"},
      {"gmma", "matrix instructions of the warp group"},
      {"mio_throttle", "the shared-memory queue"},
      {"lg_throttle", "the global-memory queue"},
      {"tex_throttle", "the texture queue"},
      {"wait", "a fixed latency"},
      {"no_instruction", "instructions to be fetched"},
      {"no_instructions", "instructions to be fetched"},
      {"branch_resolving", "a branch target"},
      {"imc_miss", "constants"},
      {"not_selected", "their turn"},
      {"dispatch_stall", "the dispatcher"},
      {"drain", "stores at their end"},
      {"sleeping", "the end of a sleep"},
  };
  for (const auto& [known, words] : kWords) {
    if (known == name) {
      return fmt::format("{} ({})", words, name);
    }
  }
  return name;
}

Roofline roofline(const RooflineInput& input, const GpuRoofs& roofs,
                  const BoundThresholds& thresholds) {
  Roofline result{input, BoundBy::kUnknown, ""};
  result.roof_source = roofs.source;
  result.intensity_flops_per_byte = ratio(input.flops, input.dram_bytes);
  result.flops_per_s = per_second(input.flops, input.duration_ns);
  result.dram_bytes_per_s = per_second(input.dram_bytes, input.duration_ns);
  result.l2_bytes_per_s = per_second(input.l2_bytes, input.duration_ns);
  result.l1_bytes_per_s = per_second(input.l1_bytes, input.duration_ns);
  result.roof_flops_per_s = input.flops ? roof_of(roofs, input.dtype) : std::nullopt;
  result.roof_bytes_per_s = roofs.memory_bytes_per_s;
  result.compute_fraction =
      std::max(input.sm_fraction, ratio(result.flops_per_s, result.roof_flops_per_s));
  RooflineInput levels = input;
  if (!levels.dram_fraction) {
    levels.dram_fraction = ratio(result.dram_bytes_per_s, result.roof_bytes_per_s);
  }
  find_memory_level(levels, result);
  classify(input, thresholds, result);
  return result;
}

}  // namespace gpuwhy
