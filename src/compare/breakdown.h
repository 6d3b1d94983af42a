// SPDX-License-Identifier: Apache-2.0
//
// Sums of rows by name, for two sides.
#pragma once

#include <algorithm>
#include <cstdlib>
#include <map>
#include <string>
#include <vector>

#include "compare/compare.h"

namespace gpuwhy {

// Rows summed by `name_of`, the largest difference first.
template <typename Row, typename NameOf>
std::vector<PartChange> breakdown_by(const std::vector<Row>& base,
                                     const std::vector<Row>& candidate, const NameOf& name_of) {
  std::map<std::string, PartChange> parts;
  for (const Row& row : base) {
    parts[name_of(row)].base_ns += row.total_ns;
  }
  for (const Row& row : candidate) {
    parts[name_of(row)].candidate_ns += row.total_ns;
  }
  std::vector<PartChange> changes;
  for (auto& [name, part] : parts) {
    part.name = name;
    changes.push_back(std::move(part));
  }
  std::stable_sort(changes.begin(), changes.end(), [](const PartChange& a, const PartChange& b) {
    return std::abs(a.difference_ns()) > std::abs(b.difference_ns());
  });
  return changes;
}

}  // namespace gpuwhy
