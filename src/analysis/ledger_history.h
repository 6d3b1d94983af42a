// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include "analysis/bucket.h"

namespace llmprof {

// The ledger of the whole capture on one GPU, bin by bin: how its buckets lie in time. The bins of
// a bucket sum to the bucket, exactly; a bin sums to its width, the last one to what is left.
struct LedgerHistory {
  static constexpr std::int64_t kMostBins = 2000;  // about what a screen is wide

  std::int64_t start_ns = 0;
  std::int64_t bin_ns = 1;
  std::vector<std::array<std::int64_t, kNumBuckets>> bins;

  LedgerHistory() = default;
  LedgerHistory(std::int64_t from_ns, std::int64_t to_ns)
      : start_ns(from_ns),
        bin_ns(std::max<std::int64_t>(1, (to_ns - from_ns) / kMostBins + 1)),
        bins(static_cast<std::size_t>((to_ns - from_ns + bin_ns - 1) / bin_ns)) {}

  void add(Bucket bucket, std::int64_t from_ns, std::int64_t to_ns) {
    while (from_ns < to_ns) {
      const std::int64_t bin = (from_ns - start_ns) / bin_ns;
      const std::int64_t end_ns = std::min(to_ns, start_ns + (bin + 1) * bin_ns);
      bins[static_cast<std::size_t>(bin)][static_cast<std::size_t>(bucket)] += end_ns - from_ns;
      from_ns = end_ns;
    }
  }
};

}  // namespace llmprof
