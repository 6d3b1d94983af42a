// SPDX-License-Identifier: Apache-2.0
//
// Times that users of a model wait for.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "analysis/stage_times.h"

namespace gpuwhy {

struct Analysis;

// A latency: which length of the steps it is, or why there is none.
struct Latency {
  StageTimes times;    // n is 0 if there is none
  std::string basis;   // e.g. "period on the GPU of decode 2..39, 38 of 40"
  std::string reason;  // why there is none
};

// Time to first token, time per output token, and the rate of decode.
struct Latencies {
  std::string source;  // the pass they are from; empty: no stage was timed
  Latency ttft;
  Latency tpot;
  std::optional<double> decode_tokens_per_s;     // of all sequences and replicas together
  std::optional<std::int64_t> decode_sequences;  // in a step, median
};

// From the pass without a profiler where its marks cover the GPU work, else from the recording.
Latencies latencies_of(const Analysis& analysis);

}  // namespace gpuwhy
