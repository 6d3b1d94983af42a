// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "base/json_fwd.h"
#include "compare/compare.h"

namespace gpuwhy {

struct Results;

// What comparisons need of a run. `inputs` is inputs.yaml of its bundle, or null.
RunSummary summary_of_run(const std::string& label, const Results& metrics, const Json& inputs);

// Budgets may name any number of metrics.json: those missing in the summary are added. Throws
// kUsage for an invalid path, and for a change whose direction is unknown.
void add_budgeted(const std::vector<MetricBudget>& budgets, const Json& metrics, RunSummary& run);

// The part of metrics.json that comparisons read, for a small file.
Json compared_part(const Json& metrics);

}  // namespace gpuwhy
