// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "base/json_fwd.h"
#include "compare/compare.h"

namespace llmprof {

struct Metrics;

// What comparisons need of a run. `inputs` is inputs.yaml of its bundle, or null.
RunSummary summary_of_run(const std::string& label, const Metrics& metrics, const Json& inputs);

// Budgets may name any number of metrics.json: those that the summary lacks are put into it. Throws
// kUsage for what is no path, and for a change of which nobody knows whether it is for the better.
void add_budgeted(const std::vector<MetricBudget>& budgets, const Json& metrics, RunSummary& run);

// The part of metrics.json that comparisons read, for a file that stays small.
Json compared_part(const Json& metrics);

}  // namespace llmprof
