// SPDX-License-Identifier: Apache-2.0
//
// Values of members as table cells.
#include "report/member_table.h"

#include "base/json.h"

namespace llmprof {

Json cell_json(const std::string& value, const Field& field) {
  return field.is_null_if_empty ? text_or_null(value) : Json(value);
}

Json cell_json(double value, const Field& /*field*/) {
  return value;
}

Json cell_json(std::int64_t value, const Field& /*field*/) {
  return value;
}

Json cell_json(const std::optional<double>& value, const Field& /*field*/) {
  return number_or_null(value);
}

Json cell_json(const std::optional<std::int64_t>& value, const Field& /*field*/) {
  return number_or_null(value);
}

Json cell_json(const BucketTimes& value, const Field& /*field*/) {
  Json json = Json::object();
  for (std::size_t i = 0; i < kNumBuckets; ++i) {
    json.emplace(kBucketNames[i], value[i]);
  }
  return json;
}

}  // namespace llmprof
