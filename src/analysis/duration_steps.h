// SPDX-License-Identifier: Apache-2.0
//
// Durations on a logarithmic scale, eight steps an octave: the three bits behind the leading one.
// Below 8 ns each value is its own step. What a histogram of durations is made of.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>

namespace llmprof {

inline constexpr int kNumDurationSteps = 512;

inline int step_of(std::int64_t duration_ns) {
  const auto value = static_cast<std::uint64_t>(std::max<std::int64_t>(duration_ns, 0));
  if (value < 8) {
    return static_cast<int>(value);
  }
  const int octave = static_cast<int>(std::bit_width(value)) - 4;
  return octave * 8 + static_cast<int>(value >> octave);
}

// The longest duration of a step.
inline std::int64_t last_of(int step) {
  if (step < 16) {
    return step;
  }
  const int octave = step / 8 - 1;
  const auto mantissa = static_cast<std::uint64_t>(step % 8 + 8);
  return static_cast<std::int64_t>(((mantissa + 1) << octave) - 1);
}

}  // namespace llmprof
