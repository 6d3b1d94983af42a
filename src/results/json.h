// SPDX-License-Identifier: Apache-2.0
//
// metrics.json, written and read by the descriptions of its rows.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "base/json_fwd.h"
#include "results/results.h"

namespace gpuwhy {

// The form of metrics.json. Keys that are only added do not raise it. Form 1 had `origins` too.
inline constexpr int kMetricsVersion = 2;

Json metrics_json(const Results& metrics);
std::string metrics_json_text(const Results& metrics);

// Throws kInput, naming the key, if a value has another type than its member. Missing keys leave
// their member unchanged; unknown keys are ignored.
Results metrics_from_json(const Json& json);

// Gives a metrics.json of an earlier form the one of today.
void make_current(Json& metrics);

// The pass without a profiler.
struct UnprofiledRun {
  std::int64_t wall_ns = 0;
  int exit_code = 0;
  std::size_t num_processes = 0;
  std::uint64_t num_lost_ranges = 0;
  std::string stage_source;  // empty: no stage is marked
};

// baseline/metrics.json: the stages as in `baseline` of metrics.json.
std::string unprofiled_json(const UnprofiledRun& run, const std::vector<StageTimes>& stages);

// What a capture lacks, as in `contract` of metrics.json and in a manifest.
Json contract_json(const std::vector<BreachRow>& breaches);

}  // namespace gpuwhy
