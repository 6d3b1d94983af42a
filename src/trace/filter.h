// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "trace/trace.h"

namespace llmprof {

// Which part of a recording is looked at; empty: all of it.
struct TraceFilter {
  std::optional<std::uint32_t> device;  // as CUDA numbers it
  std::optional<std::uint32_t> pid;

  bool is_empty() const { return !device && !pid; }
};

// Drops the work of other GPUs and all that other processes did. Calls of the same process stay:
// they may have launched what stays.
void apply_filter(const TraceFilter& filter, Trace& trace);

// Whether an event can be one of a recording whose times begin at 0. No recording lasts a year; and
// neither differences of such times nor millions of them overflow.
bool is_plausible(std::int64_t start_ns, std::int64_t end_ns);

// Drops all that is not, for recordings whose times begin at 0.
void drop_implausible(Trace& trace);

// Throws kInput where durations add up to more than a number holds: "events", "stages".
void require_sum_fits(double sum_ns, std::string_view what);

}  // namespace llmprof
