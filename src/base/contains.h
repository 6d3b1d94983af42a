// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <iterator>

namespace gpuwhy {

// Whether a range has an element that equals the value, searched one by one.
template <typename Range, typename Value>
bool contains(const Range& range, const Value& value) {
  return std::find(std::begin(range), std::end(range), value) != std::end(range);
}

}  // namespace gpuwhy
