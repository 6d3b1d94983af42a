// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace gpuwhy {

// The sum of two non-negative numbers, or the largest number if it does not fit: as associative and
// commutative as the sum itself, and no untrusted file can overflow it.
inline std::int64_t saturated_sum(std::int64_t a, std::int64_t b) {
  std::int64_t sum = 0;
  return __builtin_add_overflow(a, b, &sum) ? INT64_MAX : sum;
}

}  // namespace gpuwhy
