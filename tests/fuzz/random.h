// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <random>

namespace gpuwhy {

using Random = std::mt19937_64;

// From 0 to limit - 1.
inline std::size_t pick(Random& random, std::size_t limit) {
  return limit == 0 ? 0 : random() % limit;
}

// One of a list.
template <typename List>
decltype(auto) one_of(const List& list, Random& random) {
  return list[pick(random, std::size(list))];
}

}  // namespace gpuwhy
