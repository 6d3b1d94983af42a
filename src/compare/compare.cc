// SPDX-License-Identifier: Apache-2.0
//
// Comparison of metrics between two sets of runs, and the verdict.
//
// Each metric has one value per run. The logarithms of the two sides' values are compared by ranks
// (statistics.cc), and the interval of the ratio decides: slower only if even its fast end is
// slower by more than the smallest effect that matters, unchanged only if its slow end is not. In
// between the result is inconclusive, with the number of runs that would decide. A test against "no
// difference at all" would flag any change, however small, given enough runs; a fixed threshold on
// the measured ratio would flag noise.
//
// False alarms are distributed over the metrics that decide (alpha / their number, Bonferroni), so
// that more metrics do not raise them. Kernels and operators do not decide (significance.cc).
//
// What this gets wrong: runs of a side must be exchangeable, so runs should be interleaved. One run
// per side says nothing about the variation between runs; its steps give an interval, but no
// verdict.
#include "compare/compare.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "compare/statistics.h"

namespace llmprof {
namespace {

// Unchanged is claimed at this level: a change that matters is missed once in twenty times.
constexpr double kPassAlpha = 0.05;
// The suggested number of repeats decides four times out of five.
constexpr double kPower = 0.8;
// Ranks need this much more than means do, for normal values: sqrt(pi / 3).
constexpr double kRankCost = 1.0233;
constexpr std::int64_t kMostRepeats = 1000;

const RunMetric* find_metric(const RunSummary& run, const std::string& key) {
  const auto metric = std::find_if(run.metrics.begin(), run.metrics.end(),
                                   [&](const RunMetric& one) { return one.key == key; });
  return metric == run.metrics.end() ? nullptr : &*metric;
}

// One value per run; empty if a run has none. The times of a run that failed are those of a part of
// its work.
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

std::vector<double> logs_of(const std::vector<double>& values, bool is_larger_better) {
  std::vector<double> logs;
  logs.reserve(values.size());
  for (const double value : values) {
    logs.push_back(is_larger_better ? -std::log(value) : std::log(value));
  }
  return logs;
}

bool are_positive(const std::vector<double>& values) {
  return std::all_of(values.begin(), values.end(), [](double value) { return value > 0; });
}

const MetricBudget* budget_of(const CompareOptions& options, const std::string& key) {
  const auto budget = std::find_if(options.budgets.begin(), options.budgets.end(),
                                   [&](const MetricBudget& one) { return one.key == key; });
  return budget == options.budgets.end() ? nullptr : &*budget;
}

double pooled_deviation(const std::vector<double>& a, const std::vector<double>& b) {
  const double one = robust_deviation(a);
  const double other = robust_deviation(b);
  return std::sqrt((one * one + other * other) / 2);
}

// Runs per side with which a difference of `distance` from a limit would be detected; `least` are
// those without which the gate cannot raise an alarm at all.
std::optional<std::int64_t> repeats_for(double distance, double deviation, double alpha,
                                        std::int64_t least) {
  if (!(deviation > 0)) {
    return least;
  }
  const double z = normal_quantile(1 - alpha) + normal_quantile(kPower);
  const double share = kRankCost * deviation * z / std::abs(distance);
  const double needed = std::ceil(2 * share * share);
  if (!(needed <= static_cast<double>(kMostRepeats))) {
    return std::nullopt;
  }
  return std::max(least, static_cast<std::int64_t>(needed));
}

void set_ratio(const Shift& shift, double level, MetricChange& row) {
  const auto bounded = [](double log) {
    return std::isfinite(log) ? std::optional(std::exp(log)) : std::nullopt;
  };
  const bool is_flipped = row.is_larger_better;
  row.ratio = bounded(is_flipped ? -shift.estimate : shift.estimate);
  row.ratio_low = bounded(is_flipped ? -shift.high : shift.low);
  row.ratio_high = bounded(is_flipped ? -shift.low : shift.high);
  row.interval_level = level;
}

// Several runs per side: ranks of runs. The row gets the interval that decided: the narrow one
// where it shows that nothing got worse, else the wide one.
void judge_runs(const std::vector<double>& base, const std::vector<double>& candidate, double alpha,
                MetricChange& row) {
  const std::vector<double> before = logs_of(base, row.is_larger_better);
  const std::vector<double> after = logs_of(candidate, row.is_larger_better);
  const double wide_level = 1 - 2 * alpha;
  const double narrow_level = 1 - 2 * kPassAlpha;
  const Shift wide = shift_of(before, after, wide_level);
  const Shift narrow = shift_of(before, after, narrow_level);
  const double limit = std::log1p(row.limit_fraction);
  row.method = "runs";
  row.p = rank_test(before, after, Tail::kTwoSided).p;
  set_ratio(wide, wide_level, row);
  if (wide.low > limit) {
    row.change = Change::kWorse;
  } else if (wide.high < -limit) {
    row.change = Change::kBetter;
  } else if (narrow.high < limit) {
    row.change = Change::kSame;
    set_ratio(narrow, narrow_level, row);
  } else {
    row.change = Change::kUnclear;
    const bool looks_worse = wide.estimate > limit;
    const double deviation = pooled_deviation(before, after);
    row.repeats_needed = repeats_for(wide.estimate - limit, deviation,
                                     looks_worse ? alpha : kPassAlpha, least_repeats(alpha));
    if (row.repeats_needed) {
      // The estimate is rough, but the number of runs made was evidently not enough.
      const auto made = static_cast<std::int64_t>(std::min(before.size(), after.size()));
      row.repeats_needed = std::max(*row.repeats_needed, made + 1);
    }
    row.reason = row.repeats_needed
                     ? fmt::format("about {} runs per side would decide", *row.repeats_needed)
                     : fmt::format(
                           "the change is near the limit of {:g} %, and runs of a side "
                           "differ by {:.2g} %: make runs steadier, or raise --effect",
                           row.limit_fraction * 100, deviation * 100);
  }
}

const StageLengths* lengths_of(const RunSummary& run, const std::string& stage) {
  const auto steps = std::find_if(run.steps.begin(), run.steps.end(),
                                  [&](const StageLengths& one) { return one.stage == stage; });
  return stage.empty() || steps == run.steps.end() ? nullptr : &*steps;
}

// One run per side: its steps, in blocks. They do not contain the variation between runs, so there
// is not a verdict.
void judge_steps(const RunSummary& base, const RunSummary& candidate, double alpha,
                 MetricChange& row) {
  const RunMetric* metric = find_metric(base, row.key);
  const StageLengths* before = lengths_of(base, metric->steps);
  const StageLengths* after = lengths_of(candidate, metric->steps);
  row.change = Change::kUnclear;
  row.repeats_needed = least_repeats(alpha);
  row.reason = fmt::format("one run per side: noise unknown; use at least {} runs per side",
                           *row.repeats_needed);
  if (before == nullptr || after == nullptr) {
    return;
  }
  if (const auto interval =
          block_bootstrap_ratio(before->durations_ns, after->durations_ns, 1 - 2 * alpha)) {
    row.method = "steps of one run";
    row.interval_level = 1 - 2 * alpha;
    row.ratio_low = interval->low;
    row.ratio_high = interval->high;
  }
}

// Limits on the value itself: every run keeps them, none does, or it is unclear.
void judge_value(const MetricBudget& budget, const std::vector<double>& candidate,
                 MetricChange& row) {
  const auto breaks = [&](double value) {
    return (budget.at_most && value > *budget.at_most) ||
           (budget.at_least && value < *budget.at_least);
  };
  const auto broken = std::count_if(candidate.begin(), candidate.end(), breaks);
  if (broken == 0) {
    return;
  }
  const auto all = static_cast<std::ptrdiff_t>(candidate.size());
  row.change = broken == all ? Change::kWorse : Change::kUnclear;
  row.repeats_needed.reset();
  row.reason = broken == all ? "every run breaks the budget's limit"
                             : fmt::format("{} of {} runs break the budget's limit", broken, all);
  row.is_limit_above = budget.at_most && *row.candidate > *budget.at_most;
  row.broken_limit = row.is_limit_above || !budget.at_least ? budget.at_most : budget.at_least;
}

MetricChange compare_metric(const RunMetric& metric, const std::vector<RunSummary>& base,
                            const std::vector<RunSummary>& candidate, const CompareOptions& options,
                            double alpha) {
  MetricChange row;
  row.key = metric.key;
  row.unit = metric.unit;
  row.is_larger_better = metric.is_larger_better;
  const MetricBudget* budget = budget_of(options, metric.key);
  row.is_gated = metric.is_gated || budget != nullptr;
  row.at_most = budget == nullptr ? std::nullopt : budget->at_most;
  row.at_least = budget == nullptr ? std::nullopt : budget->at_least;
  row.limit_fraction = budget != nullptr && budget->change_fraction ? *budget->change_fraction
                                                                    : options.smallest_effect;
  const std::vector<double> before = values_of(base, metric.key);
  const std::vector<double> after = values_of(candidate, metric.key);
  row.base = before.empty() ? std::nullopt : std::optional(median_of(before));
  row.candidate = after.empty() ? std::nullopt : std::optional(median_of(after));
  const bool is_absolute = budget != nullptr && !budget->change_fraction;
  if (!row.candidate || (!row.base && !is_absolute)) {
    row.reason = "not in every run";
    row.change = row.is_gated ? Change::kUnclear : Change::kNotJudged;
    return row;
  }
  if (!row.base || !are_positive(before) || !are_positive(after)) {
    row.reason = "0 in some run: no ratio";
    row.change = row.is_gated ? Change::kUnclear : Change::kNotJudged;
  } else {
    row.ratio = *row.candidate / *row.base;
    if (before.size() == 1 && after.size() == 1) {
      judge_steps(base[0], candidate[0], alpha, row);
    } else {
      judge_runs(before, after, alpha, row);
    }
  }
  // A limit on the value needs no base and few runs. It is added to the test for a slowdown of a
  // gated metric, and does not replace it.
  if (is_absolute && !(metric.is_gated && row.change == Change::kWorse)) {
    row.change = Change::kSame;
    row.is_within_limit = true;
    row.reason = "within its limit";
    row.repeats_needed.reset();
  }
  if (budget != nullptr) {
    judge_value(*budget, after, row);
  }
  return row;
}

std::string metric_words(const MetricChange& row) {
  const auto percent = [](double ratio) { return fmt::format("{:+.2f} %", (ratio - 1) * 100); };
  std::string text = fmt::format("{} {}", metric_label(row.key), percent(row.ratio.value_or(1)));
  if (row.ratio_low && row.ratio_high && row.interval_level) {
    text += fmt::format(" ({:.3g} % interval {} to {})", *row.interval_level * 100,
                        percent(*row.ratio_low), percent(*row.ratio_high));
  }
  return text;
}

std::string listed(const std::vector<MetricChange>& metrics, Change change, bool gated_only) {
  std::vector<std::string> words;
  for (const MetricChange& row : metrics) {
    if (row.change == change && (row.is_gated || !gated_only)) {
      words.push_back(row.reason.empty()
                          ? metric_words(row)
                          : fmt::format("{}: {}", metric_label(row.key), row.reason));
    }
  }
  return fmt::format("{}", fmt::join(words, "; "));
}

bool has_gated(const std::vector<MetricChange>& metrics, Change change) {
  return std::any_of(metrics.begin(), metrics.end(),
                     [&](const MetricChange& row) { return row.is_gated && row.change == change; });
}

std::string passed_sentence(const CompareOptions& options, bool has_base) {
  if (!has_base) {
    return "every value is within its limit";
  }
  return options.budgets.empty()
             ? fmt::format("nothing got slower by {:g} % or more", options.smallest_effect * 100)
             : "every budget is met, and no other gated metric got slower by " +
                   fmt::format("{:g} % or more", options.smallest_effect * 100);
}

// From the strongest reason to the weakest: invalid, regression, inconclusive, pass.
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
  const bool is_gated = std::any_of(metrics.begin(), metrics.end(),
                                    [](const MetricChange& row) { return row.is_gated; });
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
    comparison.sentence =
        (has_base ? "slower: " : "outside its limit: ") + listed(metrics, Change::kWorse, true);
  } else if (!is_gated || has_gated(metrics, Change::kUnclear)) {
    comparison.verdict = Verdict::kInconclusive;
    comparison.sentence = is_gated ? "not decided: " + listed(metrics, Change::kUnclear, true)
                                   : "not decided: no run has a time to judge by";
  } else {
    comparison.verdict = Verdict::kPass;
    const std::string better = listed(metrics, Change::kBetter, true);
    comparison.sentence = better.empty() ? passed_sentence(options, has_base) : "faster: " + better;
  }
}

// The run nearest to its side's median, by the first metric that decides. A run whose recording
// failed has nothing to break down and is taken only if all are like that.
const RunSummary& median_run(const std::vector<RunSummary>& runs) {
  const RunMetric* gate = nullptr;
  for (const RunMetric& metric : runs[0].metrics) {
    gate = gate == nullptr && metric.is_gated ? &metric : gate;
  }
  const std::vector<double> values =
      gate == nullptr ? std::vector<double>() : values_of(runs, gate->key);
  const double middle = values.empty() ? 0 : median_of(values);
  const auto rank_of = [&](std::size_t i) {
    const bool is_empty = runs[i].kernels.empty() && runs[i].operators.empty();
    return std::pair(is_empty, values.empty() ? 0 : std::abs(values[i] - middle));
  };
  std::size_t nearest = 0;
  for (std::size_t i = 1; i < runs.size(); ++i) {
    nearest = rank_of(i) < rank_of(nearest) ? i : nearest;
  }
  return runs[nearest];
}

std::vector<std::string> labels_of(const std::vector<RunSummary>& runs) {
  std::vector<std::string> labels;
  labels.reserve(runs.size());
  for (const RunSummary& run : runs) {
    labels.push_back(run.label);
  }
  return labels;
}

// A budget for a metric that no run has must not pass silently.
MetricChange absent_metric(const MetricBudget& budget) {
  MetricChange row;
  row.key = budget.key;
  row.is_gated = true;
  row.change = Change::kUnclear;
  row.reason = "the budget names it, no run has it";
  return row;
}

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

std::string metric_label(const std::string& key) {
  if (key == "aggregates.ttft.p50_ns") {
    return "time to first token (p50)";
  }
  if (key == "aggregates.tpot.p50_ns") {
    return "time per token (p50)";
  }
  if (key == "aggregates.program_ns") {
    return "length of the program";
  }
  constexpr std::string_view kBefore = "stages[stage=";
  constexpr std::string_view kAfter = "].host_median_ns";
  if (key.starts_with(kBefore) && key.ends_with(kAfter)) {
    const std::string stage =
        key.substr(kBefore.size(), key.size() - kBefore.size() - kAfter.size());
    return stage == "all" ? "length of the recording" : stage + " (median)";
  }
  constexpr std::string_view kBeforePass = "structure.passes[pass=";
  constexpr std::string_view kAfterPass = "].period_median_ns";
  if (key.starts_with(kBeforePass) && key.ends_with(kAfterPass)) {
    return fmt::format(
        "time from one {} pass to the next (median)",
        key.substr(kBeforePass.size(), key.size() - kBeforePass.size() - kAfterPass.size()));
  }
  return key;
}

const char* change_name(Change change) {
  switch (change) {
    case Change::kSame:
      return "same";
    case Change::kWorse:
      return "worse";
    case Change::kBetter:
      return "better";
    case Change::kUnclear:
      return "unclear";
    case Change::kNotJudged:
      return "not judged";
  }
  return "";
}

const char* verdict_name(Verdict verdict) {
  switch (verdict) {
    case Verdict::kPass:
      return "pass";
    case Verdict::kRegress:
      return "regress";
    case Verdict::kInconclusive:
      return "inconclusive";
    case Verdict::kInvalid:
      return "invalid";
  }
  return "";
}

std::int64_t least_repeats(double alpha) {
  // The most extreme of C(2n, n) permutations must be rare enough.
  double deals = 1;
  std::int64_t n = 0;
  while (deals * alpha < 1 && n < kMostRepeats) {
    ++n;
    const auto k = static_cast<double>(n);
    deals *= (2 * k) * (2 * k - 1) / (k * k);
  }
  return std::max<std::int64_t>(n, 2);
}

std::vector<MetricChange> compare_metrics(const std::vector<RunSummary>& base,
                                          const std::vector<RunSummary>& candidate,
                                          const CompareOptions& options) {
  std::vector<const RunMetric*> all;
  for (const std::vector<RunSummary>* side : {&base, &candidate}) {
    for (const RunMetric& metric : (*side)[0].metrics) {
      if (side == &base || find_metric(base[0], metric.key) == nullptr) {
        all.push_back(&metric);
      }
    }
  }
  const auto num_gated = std::count_if(all.begin(), all.end(), [&](const RunMetric* metric) {
    return metric->is_gated || budget_of(options, metric->key) != nullptr;
  });
  std::vector<MetricChange> rows;
  for (const RunMetric* metric : all) {
    const bool is_gated = metric->is_gated || budget_of(options, metric->key) != nullptr;
    const double share = is_gated ? static_cast<double>(num_gated) : 1.0;
    rows.push_back(compare_metric(*metric, base, candidate, options, options.alpha / share));
  }
  for (const MetricBudget& budget : options.budgets) {
    if (std::none_of(all.begin(), all.end(),
                     [&](const RunMetric* metric) { return metric->key == budget.key; })) {
      rows.push_back(absent_metric(budget));
    }
  }
  return rows;
}

bool has_failed_run(const Comparison& comparison) {
  return std::any_of(comparison.facts.begin(), comparison.facts.end(),
                     [](const FactDifference& one) { return one.fact == "content" && one.breaks; });
}

Comparison judge_limits(const std::vector<RunSummary>& runs, const CompareOptions& options) {
  Comparison comparison;
  comparison.candidate = labels_of(runs);
  comparison.candidate_median = median_run(runs).label;
  for (const RunSummary& run : runs) {
    if (!run.absent.empty()) {
      comparison.facts.push_back(
          {"content", "", run.label, true, fmt::format("{}: {}", run.label, run.absent)});
    }
  }
  for (const MetricBudget& budget : options.budgets) {
    const RunMetric* metric = find_metric(runs[0], budget.key);
    comparison.metrics.push_back(metric == nullptr
                                     ? absent_metric(budget)
                                     : compare_metric(*metric, {}, runs, options, options.alpha));
  }
  decide(options, comparison);
  return comparison;
}

Comparison compare_runs(const std::vector<RunSummary>& base,
                        const std::vector<RunSummary>& candidate, const CompareOptions& options) {
  Comparison comparison;
  comparison.base = labels_of(base);
  comparison.candidate = labels_of(candidate);
  comparison.facts = check_comparable(base, candidate, options.allowed);
  comparison.metrics = compare_metrics(base, candidate, options);
  const RunSummary& before = median_run(base);
  const RunSummary& after = median_run(candidate);
  comparison.base_launches = before.launches;
  comparison.candidate_launches = after.launches;
  comparison.base_median = before.label;
  comparison.candidate_median = after.label;
  if (!has_failed_run(comparison)) {
    diff_runs(before, after, comparison);
    mark_significant_changes(base, candidate, options, comparison);
  }
  decide(options, comparison);
  return comparison;
}

SelfTest self_test(const std::vector<RunSummary>& runs, const CompareOptions& options,
                   std::int64_t most_deals, std::uint64_t seed) {
  SelfTest test;
  const std::size_t half = runs.size() / 2;
  test.runs_a_side = static_cast<std::int64_t>(half);
  if (half == 0) {
    return test;
  }
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
    comparison.base = labels_of(sides[0]);
    comparison.metrics = compare_metrics(sides[0], sides[1], options);
    decide(options, comparison);
    const auto num_gated = std::count_if(comparison.metrics.begin(), comparison.metrics.end(),
                                         [](const MetricChange& row) { return row.is_gated; });
    if (num_gated > 0) {
      test.least_runs = 2 * least_repeats(options.alpha / static_cast<double>(num_gated));
      test.can_alarm = 2 * test.runs_a_side >= test.least_runs;
    }
    test.alarms += comparison.verdict == Verdict::kRegress ? 1 : 0;
    test.passes += comparison.verdict == Verdict::kPass ? 1 : 0;
    test.inconclusive += comparison.verdict == Verdict::kInconclusive ? 1 : 0;
  }
  return test;
}

}  // namespace llmprof
