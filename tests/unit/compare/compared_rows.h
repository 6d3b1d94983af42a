// SPDX-License-Identifier: Apache-2.0
//
// Rows of runs, with what tests of comparisons say of them.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "compare/compare.h"

namespace gpuwhy {

inline ShapedOperator operator_row(const std::string& name, const RowName& stage,
                                   std::int64_t total_ns, std::int64_t calls,
                                   const std::string& shape = "") {
  ShapedOperator row;
  row.name = name;
  row.stage = stage;
  row.total_ns = total_ns;
  row.calls = calls;
  row.shape = shape;
  return row;
}

inline LedgerAmount ledger_row(const RowName& stage, const std::string& device,
                               const std::vector<std::pair<Bucket, std::int64_t>>& buckets) {
  LedgerAmount row;
  row.stage = stage;
  row.device = device;
  for (const auto& [bucket, time_ns] : buckets) {
    row.buckets_ns[static_cast<std::size_t>(bucket)] = time_ns;
    row.window_ns += time_ns;
  }
  return row;
}

}  // namespace gpuwhy
