// SPDX-License-Identifier: Apache-2.0
//
// Sorting of what is nearly sorted: rows of a few threads or ranks, one after the other.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

namespace gpuwhy {

// Sorts by merging the ascending sequences that `values` consists of: linear for one of them, and n
// log k for k. Equal values keep their order.
template <typename T, typename Less>
void sort_runs(std::vector<T>& values, Less less) {
  const auto at = [&](std::size_t i) { return values.begin() + static_cast<std::ptrdiff_t>(i); };
  std::vector<std::size_t> ends;  // of the sequences
  for (auto next = values.begin(); next != values.end();) {
    next = std::is_sorted_until(next, values.end(), less);
    ends.push_back(static_cast<std::size_t>(next - values.begin()));
    if (ends.size() * 8 > values.size() && ends.size() > 8) {  // not of this kind
      std::ranges::stable_sort(values, less);
      return;
    }
  }
  while (ends.size() > 1) {
    std::size_t num_left = 0;
    for (std::size_t i = 0; i < ends.size(); i += 2) {
      const std::size_t end = ends[std::min(i + 1, ends.size() - 1)];
      std::inplace_merge(at(i == 0 ? 0 : ends[i - 1]), at(ends[i]), at(end), less);
      ends[num_left++] = end;
    }
    ends.resize(num_left);
  }
}

}  // namespace gpuwhy
