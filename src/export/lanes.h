// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <vector>

namespace gpuwhy {

// Assignment of overlapping slices of a row to lanes, because viewers only support nesting. Must be
// called in order of start.
class Lanes {
 public:
  // `may_nest`: a slice may lie inside another, as calls do; kernels of a stream do not.
  explicit Lanes(bool may_nest) : may_nest_(may_nest) {}

  // The lowest lane that fits a slice starting now.
  std::uint32_t open(std::int64_t end_ns) {
    const std::uint32_t lane = find(end_ns);
    ends_[lane].push_back(end_ns);
    return lane;
  }

  // Ends the most recently started slice of this lane.
  void close(std::uint32_t lane) {
    ends_[lane].pop_back();
    if (ends_[lane].empty()) {
      empty_.push_back(lane);
      std::push_heap(empty_.begin(), empty_.end(), std::greater<>());
    }
  }

  std::size_t size() const { return ends_.size(); }

 private:
  std::uint32_t find(std::int64_t end_ns) {
    constexpr std::size_t kMostTried = 16;  // bounds the time on a hostile file
    for (std::size_t lane = 0; may_nest_ && lane < std::min(ends_.size(), kMostTried); ++lane) {
      if (!ends_[lane].empty() && ends_[lane].back() >= end_ns) {
        return static_cast<std::uint32_t>(lane);
      }
      if (ends_[lane].empty()) {
        break;  // as good, and lower
      }
    }
    if (empty_.empty()) {
      ends_.emplace_back();
      return static_cast<std::uint32_t>(ends_.size() - 1);
    }
    std::pop_heap(empty_.begin(), empty_.end(), std::greater<>());
    const std::uint32_t lowest = empty_.back();
    empty_.pop_back();
    return lowest;
  }

  bool may_nest_;
  std::vector<std::vector<std::int64_t>> ends_;  // by lane: ends of the open slices
  std::vector<std::uint32_t> empty_;             // a heap, the lowest first
};

}  // namespace gpuwhy
