// SPDX-License-Identifier: Apache-2.0
//
// Stages of a recording: their instances, how long each took, and what a profiler added.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "results/field.h"
#include "results/row.h"

namespace gpuwhy {

// A stage: number of instances, duration on the host, and GPU time of its launches.
struct StageRow {
  RowName stage;
  bool is_nested = false;  // decode_step inside decode
  std::int64_t num_instances = 0;
  std::int64_t num_open = 0;  // still open when the recording ended: in no mean
  std::int64_t total_ns = 0;  // host time, closed instances
  std::int64_t min_ns = 0;
  std::int64_t median_ns = 0;
  std::int64_t max_ns = 0;
  std::int64_t first_ns =
      0;  // the first one: where a capture begins with it, the profiler stretches it
  std::optional<std::int64_t>
      steady_mean_ns;          // of all but the first; nullopt if there are no others
  std::int64_t kernel_ns = 0;  // sum over its kernels, and opaque graphs
  std::int64_t num_kernels = 0;
  std::int64_t num_graph_kernels = 0;  // of these, launched as part of a CUDA graph
  std::optional<std::int64_t> tokens;  // sum of what the marks carried
};

template <typename F>
void describe(const StageRow*, F&& f) {
  using T = StageRow;
  const auto length = [](std::string_view text) {
    return number("ns", "instances", "marks", "stages.length", text);
  };
  const auto launched = [](std::string_view unit, std::string_view count, std::string_view text) {
    return number(unit, count, "kernels graphs calls marks", "stages.kernel_time", text);
  };
  f("stage", &T::stage, names_row("the stage"));
  f("nested", &T::is_nested, plain("whether it lies inside another"));
  f("instances", &T::num_instances,
    number("1", "", "marks", "stages.instances", "marks of that stage"));
  f("open", &T::num_open,
    number("1", "instances", "marks", "stages.instances", "marks without an end"));
  f("host_total_ns", &T::total_ns, length("sum of the marks' lengths"));
  f("host_min_ns", &T::min_ns, length("the shortest"));
  f("host_median_ns", &T::median_ns, length("the median"));
  f("host_max_ns", &T::max_ns, length("the longest"));
  f("host_first_ns", &T::first_ns, length("the first in time"));
  f("host_steady_mean_ns", &T::steady_mean_ns, length("the mean of all but the first"));
  f("kernel_ns", &T::kernel_ns,
    launched("ns", "kernels",
             "sum of the kernels whose launching call began inside a mark, on the same thread or "
             "process"));
  f("kernels", &T::num_kernels, launched("1", "", "those kernels"));
  f("graph_kernels", &T::num_graph_kernels,
    launched("1", "", "of those kernels, nodes of a CUDA graph"));
  f("tokens", &T::tokens,
    number("1", "instances", "marks", "stages.tokens", "sum of what the marks carried"));
}

inline constexpr std::size_t kMostDurations = 4096;  // of a stage: they tell the noise of all

// Lengths of a stage's instances.
struct StepRow {
  RowName stage;
  std::int64_t n = 0;
  std::vector<std::int64_t> durations_ns;  // in time order, the first kMostDurations
  std::optional<std::int64_t> gpu_window_median_ns;
  std::optional<std::int64_t> gpu_work_median_ns;
  std::optional<std::int64_t> period_median_ns;
  std::optional<std::vector<std::int64_t>> periods_ns;  // in time order, the first kMostDurations
};

template <typename F>
void describe(const StepRow*, F&& f) {
  using T = StepRow;
  f("stage", &T::stage, plain("the stage"));
  f("n", &T::n, number("1", "", "marks", "steps", "closed marks of that stage"));
  f("durations_ns", &T::durations_ns,
    items(number("ns", "n", "marks", "steps", "length of a mark, in time order, the first 4096"), 0,
          kMostDurations));
  const auto on_gpu = [](std::string_view text) {
    return number("ns", "n", "marks calls kernels copies graphs", "steps.gpu", text);
  };
  f("gpu_window_median_ns", &T::gpu_window_median_ns,
    on_gpu("from the first kernel of a step to the end of its last GPU work, median"));
  f("gpu_work_median_ns", &T::gpu_work_median_ns,
    on_gpu("time in which own work of a step runs, on the busiest GPU of its group, median"));
  f("period_median_ns", &T::period_median_ns,
    on_gpu("from the first kernel of a step to that of the next, median"));
  f("periods_ns", &T::periods_ns,
    items(on_gpu("those periods, in time order, the first 4096"), 0, kMostDurations));
}

// Durations of a stage on the host. Instances that never ended count only in `num_open`.
struct StageTimes {
  RowName stage;
  std::int64_t n = 0;
  std::int64_t num_open = 0;
  std::int64_t total_ns = 0;
  double mean_ns = 0;
  std::optional<double> std_ns;  // of the sample; nullopt below two instances
  std::int64_t p50_ns = 0;
  std::int64_t p99_ns = 0;
  std::int64_t min_ns = 0;
  std::int64_t max_ns = 0;
  std::optional<double> steady_mean_ns;  // of all but the first
  std::optional<std::int64_t> tokens;    // sum of what the marks carried
  std::optional<double> tokens_per_s;    // over the instances that carried some: of one stream
};

template <typename F>
void describe(const StageTimes*, F&& f) {
  using T = StageTimes;
  const auto length = [](std::string_view text) {
    return number("ns", "n", "baseline", "baseline.length", text);
  };
  f("stage", &T::stage, names_row("the stage"));
  f("n", &T::n, number("1", "", "baseline", "baseline.length", "marks with an end"));
  f("open", &T::num_open, number("1", "n", "baseline", "baseline.length", "marks without an end"));
  f("total_ns", &T::total_ns, length("sum of the marks' lengths without a profiler"));
  f("mean_ns", &T::mean_ns, length("their mean"));
  f("std_ns", &T::std_ns, length("their standard deviation, of the sample"));
  f("p50_ns", &T::p50_ns, length("the shortest that half of them do not exceed"));
  f("p99_ns", &T::p99_ns, length("the shortest that 99 % of them do not exceed"));
  f("min_ns", &T::min_ns, length("the shortest"));
  f("max_ns", &T::max_ns, length("the longest"));
  f("steady_mean_ns", &T::steady_mean_ns, length("the mean of all but the first"));
  f("tokens", &T::tokens,
    number("1", "n", "baseline", "baseline.tokens", "sum of what the marks carried"));
  f("tokens_per_s", &T::tokens_per_s,
    number("1/s", "n", "baseline", "baseline.tokens",
           "tokens over the length of the marks that carried some"));
}

// Profiler overhead of a stage: its mean under the profiler relative to its mean without. If there
// are other instances, the first is excluded from both, because a gated recording stretches it.
struct StageOverhead {
  RowName stage;
  double baseline_mean_ns = 0;
  double profiled_mean_ns = 0;
  // profiled / baseline - 1, with an interval of 95 % over the instances of the two passes. How
  // runs of a program differ is not in it.
  std::optional<double> fraction = {};
  std::optional<double> low_fraction = {};
  std::optional<double> high_fraction = {};
  std::string reason = {};  // why it cannot be measured
};

template <typename F>
void describe(const StageOverhead*, F&& f) {
  using T = StageOverhead;
  const Field mean =
      number("ns", "", "baseline marks", "overhead",
             "mean length of a stage, its first left out where both passes have several");
  f("stage", &T::stage, names_row("the stage"));
  f("baseline_mean_ns", &T::baseline_mean_ns, mean);
  f("profiled_mean_ns", &T::profiled_mean_ns, mean);
  const Field added = is_signed(number("fraction", "", "baseline marks", "overhead",
                                       "profiled_mean_ns / baseline_mean_ns - 1, and its interval "
                                       "of 95 %; null where it cannot be measured"));
  f("overhead_fraction", &T::fraction, added);
  f("low_fraction", &T::low_fraction, added);
  f("high_fraction", &T::high_fraction, added);
  f("reason", &T::reason, maybe("why it cannot be measured"));
}

}  // namespace gpuwhy
