// SPDX-License-Identifier: Apache-2.0
//
// Totals of equal launches, from which the kernel table and the groups of launches are made.
#pragma once

#include <array>
#include <cstdint>
#include <utility>
#include <vector>

#include "results/kernel.h"
#include "trace/trace.h"

namespace gpuwhy {

struct Attribution;
struct Stages;

// What equal launches have in common.
struct LaunchKey {
  std::uint32_t stage;  // of Stages, or kNone
  StringId name;
  StringId mangled_name;
  std::uint32_t shape;
  std::uint16_t device;
  std::uint16_t process;

  bool operator==(const LaunchKey&) const = default;
};

// Running totals of equal launches. There are more of them than rows of the kernel table, so each
// keeps only the few bins that occur, not the whole histogram.
class LaunchTally {
 public:
  void add(std::int64_t start_ns, std::int64_t duration_ns);

  const LaunchSums& sums() const { return sums_; }
  std::int64_t first_ns() const { return first_ns_; }

  // Calls visit(bin, launches) for each bin that occurs, from the shortest.
  template <typename Visit>
  void each_bin(Visit visit) const;

 private:
  static constexpr int kWindow = 32;

  void add_other(int bin);

  LaunchSums sums_;
  std::int64_t first_ns_ = INT64_MAX;
  // Launches by bin. Equal launches are near the first one, within a window of four octaves; the
  // few others are listed, by bin.
  std::int32_t window_start_ = INT32_MIN;
  std::array<std::uint32_t, kWindow> window_{};
  std::vector<std::pair<std::int32_t, std::int64_t>> others_;
};

template <typename Visit>
void LaunchTally::each_bin(Visit visit) const {
  auto other = others_.begin();
  for (; other != others_.end() && other->first < window_start_; ++other) {
    visit(other->first, other->second);
  }
  for (int i = 0; i < kWindow; ++i) {
    if (const std::uint32_t launches = window_[static_cast<std::size_t>(i)]; launches > 0) {
      visit(window_start_ + i, std::int64_t{launches});
    }
  }
  for (; other != others_.end(); ++other) {
    visit(other->first, other->second);
  }
}

using LaunchTallies = std::vector<std::pair<LaunchKey, LaunchTally>>;

// All kernels of a recording, in the order in which their keys first occur. One pass; memory is
// proportional to the tallies, not to the launches.
LaunchTallies tally_launches(const Trace& trace, const Stages& stages,
                             const Attribution& attribution);

}  // namespace gpuwhy
