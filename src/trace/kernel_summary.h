// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "trace/trace.h"

namespace gpuwhy {

// One kernel of a summary: totals, without individual launches.
struct KernelSummaryRow {
  std::string name;  // as the tool demangled or cut it
  std::int64_t total_ns = 0;
  std::int64_t instances = 0;
  std::optional<std::int64_t> min_ns;
  std::optional<std::int64_t> median_ns;
  std::optional<std::int64_t> max_ns;
  std::optional<LaunchShape> shape;  // where the summary splits by it
};

// A file that lists kernel totals only.
struct KernelSummary {
  CaptureInfo capture;
  std::vector<KernelSummaryRow> rows;  // in the order of the file
  Diagnostics diagnostics;
};

// The contents of a file: events, or only kernel totals.
using Recording = std::variant<Trace, KernelSummary>;

}  // namespace gpuwhy
