// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "trace/trace.h"

namespace gpuwhy {

// Selection of a part of a recording; empty selects all.
struct TraceFilter {
  std::optional<std::uint32_t> device;  // as CUDA numbers it
  std::optional<std::uint32_t> pid;

  bool is_empty() const { return !device && !pid; }
};

// Drops the work of other GPUs and everything of other processes. Calls of the same process are
// kept: they may have launched the remaining work.
void apply_filter(const TraceFilter& filter, Trace& trace);

// Which rows of each table stay, by row.
struct KeptRows {
  std::vector<bool> kernels;
  std::vector<bool> copies;
  std::vector<bool> graphs;
  std::vector<bool> api_calls;
  std::vector<bool> ranges;
  std::vector<bool> ops;
  std::vector<bool> functions;
};

// Drops all other rows, and the GPUs that are left without work.
void keep_only(const KeptRows& kept, Trace& trace);

// Whether an event is plausible in a recording whose times start at 0. No recording lasts a year,
// and neither differences of such times nor sums of millions of them overflow.
inline bool is_plausible(std::int64_t start_ns, std::int64_t end_ns) {
  constexpr std::int64_t kMostNs = 365LL * 24 * 3600 * 1'000'000'000;
  return start_ns > -kMostNs && start_ns < kMostNs && end_ns > -kMostNs && end_ns < kMostNs;
}

// Drops implausible events. For recordings whose times start at 0.
void drop_implausible(Trace& trace);

// Throws kInput if durations sum to more than 63 bits. `what`: "events", "stages".
void require_sum_fits(double sum_ns, std::string_view what);

}  // namespace gpuwhy
