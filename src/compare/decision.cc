// SPDX-License-Identifier: Apache-2.0
//
// The verdict of a comparison, with its reasons in one sentence. A reason that several metrics have
// is said once.
#include "compare/decision.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/units.h"

namespace gpuwhy {
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

std::string value_words(double value, const std::string& unit) {
  return unit == "ns" && std::abs(value) < 9e18
             ? format_duration_ns(static_cast<std::int64_t>(std::llround(value)))
         : unit == "fraction" ? format_fraction(value)
                              : fmt::format("{:g}", value);
}

// " 490 ms (at most 1.00 ms)" of a value beyond its limit, else nothing.
std::string limit_words(const MetricChange& row) {
  return row.broken_limit && row.candidate
             ? fmt::format(" {} ({} {})", value_words(*row.candidate, row.unit),
                           row.is_limit_above ? "at most" : "at least",
                           value_words(*row.broken_limit, row.unit))
             : "";
}

// Gated metrics that pass the test: "A, B: why; C +2.00 % (...)".
template <typename Test>
std::string listed(const std::vector<MetricChange>& metrics, const Test& test) {
  std::vector<ReasonGroup> groups;
  for (const MetricChange& row : metrics) {
    if (row.is_gated && test(row)) {
      add_reason(row.reason,
                 row.reason.empty() ? metric_words(row) : metric_label(row.key) + limit_words(row),
                 groups);
    }
  }
  std::vector<std::string> words;
  words.reserve(groups.size());
  for (const ReasonGroup& group : groups) {
    words.push_back(fmt::format("{}{}{}", fmt::join(group.names, ", "),
                                group.reason.empty() ? "" : ": ", group.reason));
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
void tell_regression(Comparison& comparison) {
  for (const bool is_outside : {false, true}) {
    const std::string rows = listed(comparison.metrics, [&](const MetricChange& row) {
      return row.change == Change::kWorse && row.broken_limit.has_value() == is_outside;
    });
    const char* word = is_outside ? "outside its limit" : "slower";
    if (!rows.empty() && comparison.outcome.empty()) {
      comparison.outcome = word;
      comparison.reasons = rows;
    } else if (!rows.empty()) {
      comparison.reasons += fmt::format("; {}: {}", word, rows);
    }
  }
}

// "gpu: another device is another ceiling"; what several stages have is said once, with their
// number.
std::vector<std::string> broken_facts(const std::vector<FactDifference>& facts) {
  std::vector<ReasonGroup> groups;
  for (const FactDifference& fact : facts) {
    if (fact.breaks) {
      // Which GPUs, and how many launches, is the first question.
      const bool has_values = fact.fact == "gpu" || fact.fact == "launches";
      add_reason(fact.fact == "content" ? fact.sentence
                 : has_values ? fmt::format("{} {} -> {}: {}", fact.fact, fact.base, fact.candidate,
                                            fact.sentence)
                              : fmt::format("{}: {}", fact.fact, fact.sentence),
                 fact.fact, groups);
    }
  }
  std::vector<std::string> words;
  words.reserve(groups.size());
  for (const ReasonGroup& group : groups) {
    words.push_back(group.reason + (group.names.size() == 1
                                        ? ""
                                        : fmt::format(" ({} stages)", group.names.size())));
  }
  return words;
}

}  // namespace

void add_reason(const std::string& reason, std::string name, std::vector<ReasonGroup>& groups) {
  const auto known = std::ranges::find_if(
      groups, [&](const ReasonGroup& one) { return !reason.empty() && one.reason == reason; });
  if (known == groups.end()) {
    groups.push_back({reason, {std::move(name)}});
  } else {
    known->names.push_back(std::move(name));
  }
}

std::string runs_in_words(const std::vector<std::string>& labels) {
  if (labels.size() == 1) {
    return labels.front();
  }
  return fmt::format(
      "{} runs ({} and {})", labels.size(), labels.front(),
      labels.size() == 2 ? labels.back() : fmt::format("{} more", labels.size() - 1));
}

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
  const std::vector<std::string> broken = broken_facts(comparison.facts);
  const auto is = [](Change change) {
    return [change](const MetricChange& row) { return row.change == change; };
  };
  const bool is_gated = std::ranges::any_of(metrics, &MetricChange::is_gated);
  if (!broken.empty()) {
    comparison.verdict = Decision::kInvalid;
    comparison.outcome = has_failed_run(comparison) ? "a run failed or is empty"
                         : has_base                 ? "not comparable"
                                                    : "not judged";
    comparison.reasons = fmt::format("{}", fmt::join(broken, "; "));
    for (MetricChange& row : metrics) {
      row.change = Change::kNotJudged;
      row.repeats_needed.reset();
      row.reason =
          has_failed_run(comparison) ? "a run failed or is empty" : "the runs are not comparable";
    }
  } else if (has_gated(metrics, Change::kWorse)) {
    comparison.verdict = Decision::kRegress;
    tell_regression(comparison);
  } else if (!is_gated || has_gated(metrics, Change::kUnclear)) {
    comparison.verdict = Decision::kInconclusive;
    comparison.outcome = "not decided";
    comparison.reasons =
        is_gated ? listed(metrics, is(Change::kUnclear)) : "no run has a time to judge by";
  } else {
    comparison.verdict = Decision::kPass;
    const std::string better = listed(metrics, is(Change::kBetter));
    comparison.outcome = better.empty() ? "" : "faster";
    comparison.reasons = better.empty() ? passed_sentence(options, metrics, has_base) : better;
  }
}

}  // namespace gpuwhy
