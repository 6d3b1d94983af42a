// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

namespace gpuwhy {

// The lower median: a value that occurred, never an interpolated one. nullopt if there are none.
inline std::optional<std::int64_t> lower_median(std::vector<std::int64_t> values) {
  if (values.empty()) {
    return std::nullopt;
  }
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>((values.size() - 1) / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

}  // namespace gpuwhy
