// SPDX-License-Identifier: Apache-2.0
//
// Launches of a kernel, summed: over a recording, a rank, a job or years.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>

#include "base/saturated_sum.h"

namespace gpuwhy {

inline void add_to(std::int64_t& sum, std::int64_t more) {
  sum = saturated_sum(sum, more);
}

// Sums of integers of 64 bits, or of what holds more.
template <typename Sum>
struct DurationsOf {
  Sum calls = {};
  Sum total_ns = {};
  std::int64_t min_ns = 0;
  std::int64_t max_ns = 0;
  std::map<int, std::int64_t> histogram = {};  // results/duration_histogram.h: step -> launches

  // Of launches, to launches: in any order the same.
  void add(const DurationsOf& other) {
    add_to(calls, other.calls);
    add_to(total_ns, other.total_ns);
    min_ns = std::min(min_ns, other.min_ns);
    max_ns = std::max(max_ns, other.max_ns);
    for (const auto& [step, count] : other.histogram) {
      add_to(histogram[step], count);
    }
  }
};
using Durations = DurationsOf<std::int64_t>;

}  // namespace gpuwhy
