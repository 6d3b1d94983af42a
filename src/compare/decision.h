// SPDX-License-Identifier: Apache-2.0
//
// What the parts of a comparison share: values of runs, budgets by key, and the verdict.
#pragma once

#include <string>
#include <vector>

#include "compare/compare.h"

namespace gpuwhy {

// nullptr if the run does not have it.
const RunMetric* find_metric(const RunSummary& run, const std::string& key);

// One value per run; empty if a run has none. The times of a run that failed are those of a part of
// its work.
std::vector<double> values_of(const std::vector<RunSummary>& runs, const std::string& key);

// nullptr if there is none.
const MetricBudget* budget_of(const CompareOptions& options, const std::string& key);

// Names that share a reason, reasons in the order in which they came.
struct ReasonGroup {
  std::string reason;
  std::vector<std::string> names;
};
// Adds a name to the group of its reason. An empty reason is shared by none.
void add_reason(const std::string& reason, std::string name, std::vector<ReasonGroup>& groups);
// "a", "2 runs (a and b)", "9 runs (a and 8 more)".
std::string runs_in_words(const std::vector<std::string>& labels);

// Sets verdict, outcome and reasons from facts and metrics. From the strongest reason to the
// weakest: invalid, regression, inconclusive, pass.
void decide(const CompareOptions& options, Comparison& comparison);

}  // namespace gpuwhy
