// SPDX-License-Identifier: Apache-2.0
//
// The catalog of metrics.json: meaning and origin of each number.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/json_fwd.h"
#include "results/field.h"
#include "results/format.h"

namespace gpuwhy {

// A key of metrics.json: "kernels[].total_ns", "ledgers[].buckets_ns.*".
struct CatalogRow {
  std::string keys;
  MetricInfo info;
};

// One row per key, in file order.
const std::vector<CatalogRow>& metric_catalog();

// By the pattern of a number; null if metrics.json has no such number.
const MetricInfo* metric_info(std::string_view pattern);

// docs/schema/metrics.schema.json, and the table of keys in docs/metrics.md.
Json metrics_schema();
std::string key_table();

// "kernels" as the tables of that recording format, e.g. CUPTI_ACTIVITY_KIND_KERNEL.
std::string source_text(std::string_view source, const FormatInfo& format);

}  // namespace gpuwhy
