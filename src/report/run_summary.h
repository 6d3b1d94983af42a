// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "base/json_fwd.h"
#include "compare/compare.h"

namespace llmprof {

// What comparisons need of a run, out of its metrics.json. `inputs` is inputs.yaml of its bundle,
// or null. Either may come from a stranger: what is missing is not known.
RunSummary summary_of_run(const std::string& label, const Json& metrics, const Json& inputs);

// Budgets may name any number of metrics.json: those that the summary lacks are put into it. Throws
// kUsage for what is no path, and for a change of which nobody knows whether it is for the better.
void add_budgeted(const std::vector<MetricBudget>& budgets, const Json& metrics, RunSummary& run);

// The part of metrics.json that summary_of_run() reads, for a file that stays small.
Json compared_part(const Json& metrics);

}  // namespace llmprof
