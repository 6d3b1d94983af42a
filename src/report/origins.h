// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "base/json_fwd.h"
#include "trace/format.h"

namespace llmprof {

// Where a number of metrics.json comes from.
struct KeyOrigin {
  std::string_view keys;     // a pattern: "kernels[].total_ns", "ledgers[].buckets_ns.*"
  std::string_view unit;     // ns, bytes, FLOP, 1, fraction, 1/s, FLOP/s, bytes/s
  std::string_view count;    // the key beside it that says of how many; empty: there is none
  std::string_view sources;  // of kernels, graphs, copies, calls, marks, baseline, ncu, model, gpus
  std::string_view formula;  // its id: a heading of docs/metrics.md and a word
  std::string_view text;     // the same in words
};

// The origin of a key's pattern, or null when it is no number of ours.
const KeyOrigin* origin_of(std::string_view pattern);

// All of them, as a part of metrics.json: numbers explain themselves.
Json origins_json();

// "kernels" as the tables of a recording of that format, as CUPTI_ACTIVITY_KIND_KERNEL.
std::string source_text(std::string_view source, const FormatInfo& format);

}  // namespace llmprof
