// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "capture/nvtx_timer.h"

namespace llmprof {

// The lengths of one stage's instances.
struct StageSamples {
  std::string stage;
  std::vector<std::int64_t> durations_ns;
  std::uint64_t num_open = 0;  // had no end: their lengths are not known
  std::optional<std::int64_t> tokens;
  std::int64_t tokens_ns = 0;  // length of the instances that said their tokens

  // No duration: open.
  void add(std::optional<std::int64_t> duration_ns, std::optional<std::int64_t> num_tokens);
};

// What is said of them. With no closed instance, only `num_open` is known.
struct StageTime {
  std::string stage;
  std::uint64_t n = 0;  // closed instances
  std::uint64_t num_open = 0;
  std::int64_t total_ns = 0;
  std::optional<double> mean_ns;
  std::optional<double> std_ns;  // of the sample, by n - 1: needs two
  std::optional<std::int64_t> min_ns;
  std::optional<std::int64_t> p50_ns;  // one of the lengths: the first that so many do not exceed
  std::optional<std::int64_t> p99_ns;
  std::optional<std::int64_t> max_ns;
  std::optional<std::int64_t> tokens;  // sum of what the marks said; none said any: absent
  std::optional<double> tokens_per_s;  // over the summed lengths of those that said: of one stream
};

StageTime stage_time(StageSamples samples);

// The stage of a range, or nothing when it is none.
using StageOf =
    std::function<std::optional<std::string>(std::string_view domain, std::string_view name)>;

// `prefill`, `decode_step`, `request`, and `decode` for `decode_all`, of domain LLM.
std::optional<std::string> marked_stage(std::string_view domain, std::string_view name);

// The samples of a run by stage, in the order in which stages were first entered. decode_step alone
// is decode, as in the analysis. Whole payloads of 0 or more are tokens.
std::vector<StageSamples> stage_samples(const TimedRun& run,
                                        const StageOf& stage_of = marked_stage);
std::vector<StageTime> stage_times(const TimedRun& run, const StageOf& stage_of = marked_stage);

}  // namespace llmprof
