// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <iterator>
#include <vector>

namespace gpuwhy {

// What `make` makes of each element of a range, in order: a function, or a member.
template <typename T, typename Range, typename Make>
std::vector<T> list_of(const Range& range, Make make) {
  std::vector<T> list;
  if constexpr (requires { std::size(range); }) {
    list.reserve(std::size(range));
  }
  for (const auto& one : range) {
    list.push_back(T(std::invoke(make, one)));
  }
  return list;
}

}  // namespace gpuwhy
