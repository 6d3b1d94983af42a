// SPDX-License-Identifier: Apache-2.0
//
// Rows of two sides by a key: summed, joined, and the largest difference first.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <map>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "compare/compare.h"

namespace gpuwhy {

// Largest change first, in either direction.
template <typename Row>
void sort_by_difference(std::vector<Row>& rows) {
  std::ranges::stable_sort(rows, std::greater<>(),
                           [](const Row& row) { return std::abs(row.difference_ns()); });
}

// Rows summed by `name_of`, the largest difference first.
template <typename Row, typename NameOf>
std::vector<PartChange> breakdown_by(const std::vector<Row>& base,
                                     const std::vector<Row>& candidate, const NameOf& name_of) {
  std::map<std::string, TimeChange> parts;
  for (const Row& row : base) {
    parts[name_of(row)].base_ns += row.total_ns;
  }
  for (const Row& row : candidate) {
    parts[name_of(row)].candidate_ns += row.total_ns;
  }
  std::vector<PartChange> changes;
  for (const auto& [name, sides] : parts) {
    changes.push_back({sides, name});
  }
  sort_by_difference(changes);
  return changes;
}

// Rows of one key are one row.
template <typename Row, typename KeyOf>
auto summed_by(const std::vector<Row>& rows, const KeyOf& key_of) {
  std::map<std::invoke_result_t<KeyOf, const Row&>, Row> sums;
  for (const Row& row : rows) {
    const auto [sum, is_new] = sums.try_emplace(key_of(row), row);
    if (!is_new) {
      sum->second.total_ns += row.total_ns;
      sum->second.calls += row.calls;
    }
  }
  return sums;
}

// Calls `pair` with the key and the rows of both sides, nullptr where one lacks it: first what the
// base has, then the others.
template <typename Map, typename Pair>
void for_each_pair(const Map& base, const Map& candidate, const Pair& pair) {
  for (const auto& [key, row] : base) {
    const auto other = candidate.find(key);
    pair(key, &row, other == candidate.end() ? nullptr : &other->second);
  }
  for (const auto& [key, row] : candidate) {
    if (!base.contains(key)) {
      pair(key, static_cast<decltype(&row)>(nullptr), &row);
    }
  }
}

// What a side has of a row that only the other has.
template <typename Row>
Row none_of(Row row) {
  row.total_ns = row.calls = 0;
  return row;
}

// The part of a difference due to more or fewer calls, at the base's time per call. All of it if
// one side has no calls.
template <typename Row>
std::int64_t worth_of_calls(const Row& base, const Row& candidate) {
  if (base.calls <= 0 || candidate.calls <= 0) {
    return candidate.total_ns - base.total_ns;
  }
  // Untrusted counts may be anything: stay far from the limits of integers.
  constexpr double kLargest = 4e18;
  const double mean = static_cast<double>(base.total_ns) / static_cast<double>(base.calls);
  const double more = static_cast<double>(candidate.calls) - static_cast<double>(base.calls);
  return std::llround(std::clamp(more * mean, -kLargest, kLargest));
}

}  // namespace gpuwhy
