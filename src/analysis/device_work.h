// SPDX-License-Identifier: Apache-2.0
//
// The work of one GPU in time order, as the ledger sweeps it.
#pragma once

#include <algorithm>
#include <cstdint>
#include <tuple>
#include <vector>

#include "analysis/time_category.h"
#include "trace/trace.h"

namespace llmprof {

// A kernel, copy or graph, as far as the sweep needs it. 32 bytes.
struct Work {
  std::int64_t start_ns;
  std::int64_t end_ns;
  std::uint32_t call;
  std::uint32_t instance;
  std::uint32_t nested;
  Bucket kind;  // compute, comm or copy
  bool is_graph_node;
};

// All work of one GPU by start.
struct DeviceWork {
  static constexpr std::size_t kBlock = 16;

  std::vector<Work> work;
  std::size_t end_of_kernels = 0;
  std::vector<std::int64_t> reach;  // by block of pieces: the latest end of all up to its end

  // Work that starts together is ordered by kind and launch time, never by row: the order of rows
  // in a file is arbitrary.
  void prepare(const Trace& trace) {
    const auto launch_ns = [&](const Work& one) {
      return one.call == kNone ? INT64_MIN : trace.api_calls.start_ns[one.call];
    };
    const auto order = [&](const Work& a, const Work& b) {
      if (a.start_ns != b.start_ns) {
        return a.start_ns < b.start_ns;
      }
      return std::tuple(a.end_ns, a.kind, launch_ns(a)) <
             std::tuple(b.end_ns, b.kind, launch_ns(b));
    };
    // Kernels, copies and graphs are adjacent, each mostly sorted already.
    const auto middle = work.begin() + static_cast<std::ptrdiff_t>(end_of_kernels);
    const auto sort_part = [&](auto from, auto to) {
      if (!std::is_sorted(from, to, order)) {
        std::sort(from, to, order);
      }
    };
    sort_part(work.begin(), middle);
    sort_part(middle, work.end());
    std::inplace_merge(work.begin(), middle, work.end(), order);
    reach.assign((work.size() + kBlock - 1) / kBlock, INT64_MIN);
    std::int64_t furthest = INT64_MIN;
    for (std::size_t i = 0; i < work.size(); ++i) {
      furthest = std::max(furthest, work[i].end_ns);
      reach[i / kBlock] = furthest;
    }
  }

  // The first piece that may still run at `time_ns`.
  std::size_t first_at(std::int64_t time_ns) const {
    const auto block = std::upper_bound(reach.begin(), reach.end(), time_ns);
    if (block == reach.end()) {
      return work.size();
    }
    // All blocks before have ended, and some piece of this one has not.
    std::size_t i = static_cast<std::size_t>(block - reach.begin()) * kBlock;
    while (work[i].end_ns <= time_ns) {
      ++i;
    }
    return i;
  }
};

}  // namespace llmprof
