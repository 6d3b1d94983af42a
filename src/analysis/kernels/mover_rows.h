// SPDX-License-Identifier: Apache-2.0
//
// Rows of kernels that only move data, counted by the names of their kernels.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "results/kernel_chains.h"
#include "trace/trace.h"

namespace gpuwhy {

// What remains of a row of movers in one kernel: it may take half of the longest, because its parts
// often move fp32 between each other, or with strides.
inline std::int64_t fused_row_ns(std::int64_t longest_ns) {
  return longest_ns / 2;
}

class MoverRows {
 public:
  explicit MoverRows(const Trace& trace) : strings_(trace.strings), open_(trace.streams.size()) {}

  void extend(std::uint32_t stream, StringId name, std::int64_t time_ns);

  // Ends the row of a stream, if one is open. Rows of one place are counted together.
  void end(std::uint32_t stream, std::size_t place);
  void drop(std::uint32_t stream) { open_[stream] = {}; }

  // Names the largest row of each place.
  void name_largest(std::vector<KernelChains>& chains) const;

 private:
  static constexpr std::size_t kMostGroups = 10;
  static constexpr std::size_t kMostRows = 10'000;  // different ones; later ones are not counted

  // The same kernel several times.
  struct Group {
    StringId name = {};
    std::uint32_t count = 0;
    auto operator<=>(const Group&) const = default;
  };

  struct Row {
    std::uint64_t key = 0;
    std::array<Group, kMostGroups> groups{};  // the first ones
    std::uint32_t num_groups = 0;
    std::uint32_t num_named = 0;  // kernels in groups
    std::uint32_t length = 0;
    std::int64_t total_ns = 0;
    std::int64_t longest_ns = 0;  // of its kernels, while it is open
    std::int64_t fused_ns = 0;
    std::int64_t count = 0;
    std::size_t place = 0;
  };

  std::string text_of(const Row& row) const;

  const StringPool& strings_;
  std::vector<Row> open_;  // by stream
  std::unordered_map<std::uint64_t, Row> rows_;
};

}  // namespace gpuwhy
