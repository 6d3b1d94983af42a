// SPDX-License-Identifier: Apache-2.0
//
// Values of members as table cells.
#include "report/document/member_table.h"

namespace gpuwhy {

CellValue member_cell(const std::string& value, const Field& field) {
  return field.is_null_if_empty && value.empty() ? CellValue() : CellValue(value);
}

CellValue member_cell(const BucketTimes& value, const Field& /*field*/) {
  TimeParts parts;
  for (std::size_t i = 0; i < kNumBuckets; ++i) {
    parts.emplace_back(kBucketNames[i], value[i]);
  }
  return parts;
}

}  // namespace gpuwhy
