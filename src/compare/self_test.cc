// SPDX-License-Identifier: Apache-2.0
//
// The gate on runs of one build, split into two sides at random: every alarm is a false one.
#include <algorithm>
#include <numeric>

#include "compare/compare.h"
#include "compare/decision.h"
#include "compare/statistics.h"

namespace gpuwhy {
namespace {

// Lowest, median and highest value of each gated metric.
std::vector<MetricSpread> spreads_of(const std::vector<RunSummary>& runs,
                                     const CompareOptions& options) {
  std::vector<MetricSpread> spreads;
  for (const RunMetric& metric : runs[0].metrics) {
    const std::vector<double> values = values_of(runs, metric.key);
    if (values.empty() || !(metric.is_gated || budget_of(options, metric.key) != nullptr)) {
      continue;
    }
    const auto [low, high] = std::minmax_element(values.begin(), values.end());
    spreads.push_back({metric.key, metric.unit, *low, median_of(values), *high});
  }
  return spreads;
}

}  // namespace

SelfTest self_test(const std::vector<RunSummary>& given, const CompareOptions& options,
                   std::int64_t most_deals, std::uint64_t seed) {
  SelfTest test;
  std::vector<RunSummary> runs = distinct_runs(given, test.repeated);
  test.num_runs = static_cast<std::int64_t>(runs.size());
  const std::size_t half = runs.size() / 2;
  test.runs_a_side = static_cast<std::int64_t>(half);
  if (half == 0) {
    return test;
  }
  std::vector<RunSummary> no_others;
  choose_deciding_times(runs, no_others);
  test.spreads = spreads_of(runs, options);
  SteadyRandom random(seed);
  std::vector<std::size_t> order(runs.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  for (; test.deals < most_deals; ++test.deals) {
    for (std::size_t i = order.size(); i > 1; --i) {
      std::swap(order[i - 1], order[random.below(i)]);
    }
    std::vector<RunSummary> sides[2];
    for (std::size_t i = 0; i < 2 * half; ++i) {
      sides[i % 2].push_back(runs[order[i]]);
    }
    Comparison comparison;
    comparison.base.resize(half);  // not empty: there is a base
    comparison.metrics = compare_metrics(sides[0], sides[1], options);
    decide(options, comparison);
    const auto num_gated = std::count_if(comparison.metrics.begin(), comparison.metrics.end(),
                                         [](const MetricChange& row) { return row.is_gated; });
    if (num_gated > 0) {
      test.least_runs = 2 * least_repeats(options.alpha / static_cast<double>(num_gated));
      test.can_alarm = 2 * test.runs_a_side >= test.least_runs;
    }
    test.alarms += comparison.verdict == Decision::kRegress ? 1 : 0;
    test.passes += comparison.verdict == Decision::kPass ? 1 : 0;
    test.inconclusive += comparison.verdict == Decision::kInconclusive ? 1 : 0;
  }
  return test;
}

}  // namespace gpuwhy
