// SPDX-License-Identifier: Apache-2.0
//
// Bins of a histogram of durations, eight per octave: the three bits after the leading one. Below
// 8 ns each value has its own bin.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>

namespace gpuwhy {

inline constexpr int kNumDurationBins = 512;

// The bin of a duration. Negative ones count as 0.
inline int bin_of(std::int64_t duration_ns) {
  const auto value = static_cast<std::uint64_t>(std::max<std::int64_t>(duration_ns, 0));
  if (value < 8) {
    return static_cast<int>(value);
  }
  const int octave = static_cast<int>(std::bit_width(value)) - 4;
  return octave * 8 + static_cast<int>(value >> octave);
}

// The longest duration of a bin.
inline std::int64_t bin_upper_ns(int bin) {
  if (bin < 16) {
    return bin;
  }
  const int octave = bin / 8 - 1;
  const auto mantissa = static_cast<std::uint64_t>(bin % 8 + 8);
  return static_cast<std::int64_t>(((mantissa + 1) << octave) - 1);
}

}  // namespace gpuwhy
