// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "analysis/stages.h"

namespace gpuwhy {

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
std::vector<StageTimes> time_stages(const Stages& stages);

// The same statistics of any durations, in time order, without a stage.
StageTimes times_of_durations(std::vector<std::int64_t> durations);

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
std::vector<StageOverhead> overheads_of(const std::vector<StageTimes>& baseline,
                                        const std::vector<StageTimes>& profiled);

}  // namespace gpuwhy
