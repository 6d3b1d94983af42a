// SPDX-License-Identifier: Apache-2.0
//
// Building blocks of a merge: texts as numbers, and growing histograms.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/saturated_sum.h"
#include "fleet/merge/fleet_summary.h"

namespace gpuwhy {

// Numbers distinct texts.
class TextNumbers {
 public:
  std::uint32_t of(std::string_view text) {
    const auto found = numbers_.find(text);
    if (found != numbers_.end()) {
      return found->second;
    }
    const auto number = static_cast<std::uint32_t>(texts_.size());
    numbers_.emplace(texts_.emplace_back(text), number);
    return number;
  }
  const std::string& operator[](std::uint32_t number) const { return texts_[number]; }

 private:
  std::deque<std::string> texts_;  // do not move: the keys are views of them
  std::unordered_map<std::string_view, std::uint32_t> numbers_;
};

// A sparse histogram, sorted by bin.
class BinCounts {
 public:
  void add(int step, std::int64_t count) {
    auto at = std::lower_bound(counts_.begin(), counts_.end(), step,
                               [](const auto& entry, int wanted) { return entry.first < wanted; });
    if (at == counts_.end() || at->first != step) {
      at = counts_.insert(at, {step, 0});
    }
    at->second = saturated_sum(at->second, count);
  }
  void add(const std::map<int, std::int64_t>& counts) {
    for (const auto& [step, count] : counts) {
      add(step, count);
    }
  }
  bool empty() const { return counts_.empty(); }
  std::map<int, std::int64_t> as_map() const { return {counts_.begin(), counts_.end()}; }

 private:
  std::vector<std::pair<int, std::int64_t>> counts_;
};

// Maps a pair of numbers to a row.
using RowKey = std::array<std::uint64_t, 2>;
struct RowKeyHash {
  std::size_t operator()(const RowKey& key) const {
    const std::uint64_t mixed = (key[0] ^ (key[1] * 0x9e3779b97f4a7c15ULL)) * 0xff51afd7ed558ccdULL;
    return mixed ^ (mixed >> 32);
  }
};
using RowIndex = std::unordered_map<RowKey, std::size_t, RowKeyHash>;

// One kernel of one stage, over all ranks.
struct MergedKernel : KernelSpread {
  std::uint32_t stage = 0;
  std::uint32_t kernel = 0;
  std::uint32_t family = 0;
  Durations sums;  // without histogram
  BinCounts durations;
  BinCounts relative;
};

// One call of a collective, over the ranks that took part.
struct CollectiveInstance {
  std::uint32_t communicator = 0;
  std::uint32_t stage = 0;
  std::uint32_t kernel = 0;
  std::uint32_t other_kernel = 0;
  FleetCollective values;  // except texts
};

// Compute time of one rank in one stage.
struct StageCompute {
  std::int64_t total_ns = 0;
  std::int64_t calls = 0;
};

}  // namespace gpuwhy
