// SPDX-License-Identifier: Apache-2.0
//
// The verdict of a comparison, with its reasons in one sentence. A reason that several metrics have
// is said once.
#include "compare/verdict.h"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace llmprof {
namespace {

std::string metric_words(const MetricChange& row) {
  const auto percent = [](double ratio) { return fmt::format("{:+.2f} %", (ratio - 1) * 100); };
  std::string text = fmt::format("{} {}", metric_label(row.key), percent(row.ratio.value_or(1)));
  if (row.ratio_low && row.ratio_high && row.interval_level) {
    text += fmt::format(" ({:.3g} % interval {} to {})", *row.interval_level * 100,
                        percent(*row.ratio_low), percent(*row.ratio_high));
  }
  return text;
}

// Gated metrics that pass the test: "A, B: why; C +2.00 % (...)".
template <typename Test>
std::string listed(const std::vector<MetricChange>& metrics, const Test& test) {
  std::vector<std::pair<std::string, std::vector<std::string>>> by_reason;
  for (const MetricChange& row : metrics) {
    if (!row.is_gated || !test(row)) {
      continue;
    }
    const auto known = std::ranges::find_if(
        by_reason, [&](const auto& one) { return !row.reason.empty() && one.first == row.reason; });
    const std::string label = row.reason.empty() ? metric_words(row) : metric_label(row.key);
    if (known == by_reason.end()) {
      by_reason.push_back({row.reason, {label}});
    } else {
      known->second.push_back(label);
    }
  }
  std::vector<std::string> words;
  words.reserve(by_reason.size());
  for (const auto& [reason, labels] : by_reason) {
    words.push_back(
        fmt::format("{}{}{}", fmt::join(labels, ", "), reason.empty() ? "" : ": ", reason));
  }
  return fmt::format("{}", fmt::join(words, "; "));
}

bool has_gated(const std::vector<MetricChange>& metrics, Change change) {
  return std::any_of(metrics.begin(), metrics.end(),
                     [&](const MetricChange& row) { return row.is_gated && row.change == change; });
}

std::string passed_sentence(const CompareOptions& options, const std::vector<MetricChange>& metrics,
                            bool has_base) {
  if (!has_base) {
    return "every value is within its limit";
  }
  const std::string slower =
      fmt::format("got slower by {:g} % or more", options.smallest_effect * 100);
  if (options.budgets.empty()) {
    return "nothing " + slower;
  }
  const bool has_others = std::ranges::any_of(metrics, [&](const MetricChange& row) {
    return row.is_gated && budget_of(options, row.key) == nullptr;
  });
  return has_others ? "every budget is met, and no other gated metric " + slower
                    : "every budget is met";
}

// A value beyond its limit is not a slowdown: it may have been there before.
std::string regression_sentence(const std::vector<MetricChange>& metrics) {
  std::vector<std::string> parts;
  for (const bool is_outside : {false, true}) {
    const std::string rows = listed(metrics, [&](const MetricChange& row) {
      return row.change == Change::kWorse && row.broken_limit.has_value() == is_outside;
    });
    if (!rows.empty()) {
      parts.push_back((is_outside ? "outside its limit: " : "slower: ") + rows);
    }
  }
  return fmt::format("{}", fmt::join(parts, "; "));
}

}  // namespace

const RunMetric* find_metric(const RunSummary& run, const std::string& key) {
  const auto metric = std::ranges::find(run.metrics, key, &RunMetric::key);
  return metric == run.metrics.end() ? nullptr : &*metric;
}

std::vector<double> values_of(const std::vector<RunSummary>& runs, const std::string& key) {
  std::vector<double> values;
  for (const RunSummary& run : runs) {
    const RunMetric* metric = find_metric(run, key);
    if (metric == nullptr || !run.absent.empty()) {
      return {};
    }
    values.push_back(metric->value);
  }
  return values;
}

const MetricBudget* budget_of(const CompareOptions& options, const std::string& key) {
  const auto budget = std::ranges::find(options.budgets, key, &MetricBudget::key);
  return budget == options.budgets.end() ? nullptr : &*budget;
}

void decide(const CompareOptions& options, Comparison& comparison) {
  std::vector<MetricChange>& metrics = comparison.metrics;
  const bool has_base = !comparison.base.empty();
  std::vector<std::string> broken;
  for (const FactDifference& fact : comparison.facts) {
    if (fact.breaks) {
      broken.push_back(fact.fact == "content" ? fact.sentence
                                              : fmt::format("{}: {}", fact.fact, fact.sentence));
    }
  }
  const auto is = [](Change change) {
    return [change](const MetricChange& row) { return row.change == change; };
  };
  const bool is_gated = std::ranges::any_of(metrics, &MetricChange::is_gated);
  if (!broken.empty()) {
    comparison.verdict = Verdict::kInvalid;
    comparison.sentence =
        fmt::format("{}: {}", has_base ? "not comparable" : "not judged", fmt::join(broken, "; "));
    for (MetricChange& row : metrics) {
      row.change = Change::kNotJudged;
      row.repeats_needed.reset();
      row.reason =
          has_failed_run(comparison) ? "a run failed or is empty" : "the runs are not comparable";
    }
  } else if (has_gated(metrics, Change::kWorse)) {
    comparison.verdict = Verdict::kRegress;
    comparison.sentence = regression_sentence(metrics);
  } else if (!is_gated || has_gated(metrics, Change::kUnclear)) {
    comparison.verdict = Verdict::kInconclusive;
    comparison.sentence = is_gated ? "not decided: " + listed(metrics, is(Change::kUnclear))
                                   : "not decided: no run has a time to judge by";
  } else {
    comparison.verdict = Verdict::kPass;
    const std::string better = listed(metrics, is(Change::kBetter));
    comparison.sentence =
        better.empty() ? passed_sentence(options, metrics, has_base) : "faster: " + better;
  }
}

}  // namespace llmprof
