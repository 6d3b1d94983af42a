// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <vector>

#include "compare/compare.h"

namespace gpuwhy {

// budgets.yaml: a limit for each metric that a team has one for. Throws kUsage for what it does not
// understand: a limit that is not read is one that is not kept.
//
//   budgets:
//     aggregates.tpot.p50_ns: {change: 2 %}
//     aggregates.ttft.p50_ns: {at_most: 120000000}
std::vector<MetricBudget> read_budgets(const std::filesystem::path& path);
// Those of several files. Throws kUsage if two of them limit the same key.
std::vector<MetricBudget> read_all_budgets(const std::vector<std::string>& paths);

}  // namespace gpuwhy
