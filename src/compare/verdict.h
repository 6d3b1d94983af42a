// SPDX-License-Identifier: Apache-2.0
//
// What the parts of a comparison share: values of runs, budgets by key, and the verdict.
#pragma once

#include <string>
#include <vector>

#include "compare/compare.h"

namespace llmprof {

// nullptr if the run does not have it.
const RunMetric* find_metric(const RunSummary& run, const std::string& key);

// One value per run; empty if a run has none. The times of a run that failed are those of a part of
// its work.
std::vector<double> values_of(const std::vector<RunSummary>& runs, const std::string& key);

// nullptr if there is none.
const MetricBudget* budget_of(const CompareOptions& options, const std::string& key);

// Sets verdict and sentence from facts and metrics. From the strongest reason to the weakest:
// invalid, regression, inconclusive, pass.
void decide(const CompareOptions& options, Comparison& comparison);

}  // namespace llmprof
