// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include "results/bucket.h"

namespace gpuwhy {

// The ledger of the whole capture on one GPU, by time bins. The bins of a bucket sum exactly to the
// bucket; the buckets of a bin sum to its width, the last one to the remainder.
struct LedgerHistory {
  static constexpr std::uint64_t kMostBins = 2000;  // about what a screen is wide

  std::int64_t start_ns = 0;
  std::int64_t bin_ns = 1;
  std::vector<std::array<std::int64_t, kNumBuckets>> bins;

  LedgerHistory() = default;
  LedgerHistory(std::int64_t from_ns, std::int64_t to_ns)
      : start_ns(from_ns),
        bin_ns(static_cast<std::int64_t>(between(from_ns, to_ns) / kMostBins + 1)) {
    bins.resize((between(from_ns, to_ns) + static_cast<std::uint64_t>(bin_ns) - 1) /
                static_cast<std::uint64_t>(bin_ns));
  }

  void add(Bucket bucket, std::int64_t from_ns, std::int64_t to_ns) {
    const auto width = static_cast<std::uint64_t>(bin_ns);
    std::uint64_t from = between(start_ns, from_ns);
    const std::uint64_t to = between(start_ns, to_ns);
    while (from < to && from / width < bins.size()) {
      const std::uint64_t end = std::min(to, (from / width + 1) * width);
      bins[from / width][static_cast<std::size_t>(bucket)] += static_cast<std::int64_t>(end - from);
      from = end;
    }
  }

 private:
  // Times in a hostile file may be further apart than a signed number can represent.
  static std::uint64_t between(std::int64_t from_ns, std::int64_t to_ns) {
    return to_ns <= from_ns
               ? 0
               : static_cast<std::uint64_t>(to_ns) - static_cast<std::uint64_t>(from_ns);
  }
};

}  // namespace gpuwhy
