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

#include "compare/decision.h"
#include "compare/statistics.h"

namespace gpuwhy {
namespace {

// Unchanged is claimed at this level: a change that matters is missed once in twenty times.
constexpr double kPassAlpha = 0.05;
// The suggested number of repeats decides four times out of five.
constexpr double kPower = 0.8;
// Ranks need this much more than means do, for normal values: sqrt(pi / 3).
constexpr double kRankCost = 1.0233;
constexpr std::int64_t kMostRepeats = 1000;

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
    row.reason =
        row.repeats_needed
            ? fmt::format("about {} runs per side would decide if the change really is {:+.1f} %",
                          *row.repeats_needed, (*row.ratio - 1) * 100)
            : fmt::format(
                  "the change is near the limit of {:g} %, and runs of a side "
                  "differ by {:.2g} %: make runs steadier, or raise --effect",
                  row.limit_fraction * 100, deviation * 100);
  }
}

// Periods where there are any: what the time of a token is made of. Empty if the stage has no
// steps.
std::vector<double> lengths_of(const RunSummary& run, const std::string& stage) {
  const auto steps = std::ranges::find_if(
      run.steps, [&](const StepRow& one) { return one.stage.text() == stage; });
  if (stage.empty() || steps == run.steps.end()) {
    return {};
  }
  const bool has_periods = steps->periods_ns && !steps->periods_ns->empty();
  const std::vector<std::int64_t>& lengths_ns =
      has_periods ? *steps->periods_ns : steps->durations_ns;
  return {lengths_ns.begin(), lengths_ns.end()};
}

// One run per side: its steps, in blocks. They do not contain the variation between runs, so there
// is not a verdict.
void judge_steps(const RunSummary& base, const RunSummary& candidate, double alpha,
                 MetricChange& row) {
  const RunMetric* metric = find_metric(base, row.key);
  const std::vector<double> before = lengths_of(base, metric->steps);
  const std::vector<double> after = lengths_of(candidate, metric->steps);
  row.change = Change::kUnclear;
  row.repeats_needed = least_repeats(alpha);
  row.reason = fmt::format("one run per side: noise unknown; use at least {} runs per side",
                           *row.repeats_needed);
  if (const auto interval = block_bootstrap_ratio(before, after, 1 - 2 * alpha)) {
    row.method = "steps of one run";
    row.interval_level = 1 - 2 * alpha;
    row.ratio_low = interval->low;
    row.ratio_high = interval->high;
  }
}

std::string missing_words(std::int64_t missing, std::int64_t all) {
  return fmt::format("{} of {} runs {} no value", missing, all, missing == 1 ? "has" : "have");
}

// Limits on the value itself: every run keeps them, most break them, or it is unclear. What is
// worse than the baseline for certain stays so. `candidate`: of the runs that have a value.
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
  if (row.change == Change::kWorse && 2 * broken <= all) {
    return;
  }
  row.change = 2 * broken > all ? Change::kWorse : Change::kUnclear;
  row.repeats_needed.reset();
  const char* who = row.missing_runs > 0 ? " that have it" : "";
  row.reason = broken == all ? fmt::format("every run{} breaks the budget's limit",
                                           row.missing_runs > 0 ? " that has it" : "")
                             : fmt::format("{} of {} runs{} {} the budget's limit", broken, all,
                                           who, broken == 1 ? "breaks" : "break");
  if (row.missing_runs > 0) {
    row.reason += "; " + missing_words(row.missing_runs, all + row.missing_runs);
  }
  row.is_limit_above =
      budget.at_most && std::any_of(candidate.begin(), candidate.end(),
                                    [&](double value) { return value > *budget.at_most; });
  row.broken_limit = row.is_limit_above ? budget.at_most : budget.at_least;
}

// Limits of a value that some runs lack.
void judge_measured(const MetricBudget& budget, const std::vector<RunSummary>& candidate,
                    MetricChange& row) {
  std::vector<double> measured;
  for (const RunSummary& run : candidate) {
    const RunMetric* metric = find_metric(run, row.key);
    if (metric != nullptr && run.absent.empty()) {
      measured.push_back(metric->value);
    }
  }
  if (measured.empty()) {
    return;
  }
  row.missing_runs = static_cast<std::int64_t>(candidate.size() - measured.size());
  row.candidate = median_of(measured);
  if (row.missing_runs > 0) {
    row.reason = missing_words(row.missing_runs, static_cast<std::int64_t>(candidate.size()));
  }
  judge_value(budget, measured, row);
}

MetricChange compare_metric(const RunMetric& metric, const std::vector<RunSummary>& base,
                            const std::vector<RunSummary>& candidate, const CompareOptions& options,
                            double alpha) {
  MetricChange row;
  row.key = metric.key;
  row.unit = metric.unit;
  row.stage = metric.stage;
  row.is_larger_better = metric.is_larger_better;
  const MetricBudget* budget = budget_of(options, metric.key);
  row.is_gated = metric.is_gated || budget != nullptr;
  row.at_most = budget == nullptr ? std::nullopt : budget->at_most;
  row.at_least = budget == nullptr ? std::nullopt : budget->at_least;
  row.has_change_budget = budget != nullptr && budget->change_fraction.has_value();
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
    // A limit that is broken where it was measured is broken.
    if (budget != nullptr && (budget->at_most || budget->at_least)) {
      judge_measured(*budget, candidate, row);
    }
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
  // A limit on the value needs no base and few runs. It is added to the test of a metric that
  // decides, and does not replace it.
  if (is_absolute && (!metric.is_gated || base.empty())) {
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

// What a side did per second, and when: medians of its runs.
SideRate rate_of(const std::vector<RunSummary>& runs) {
  SideRate rate;
  rate.num_gpus = runs[0].num_gpus;
  rate.first_recorded = rate.last_recorded = runs[0].recorded;
  std::vector<double> per_s;
  bool is_dated = true;
  for (const RunSummary& run : runs) {
    rate.num_gpus = run.num_gpus == rate.num_gpus ? rate.num_gpus : 0;
    is_dated = is_dated && !run.recorded.empty();
    rate.first_recorded = std::min(rate.first_recorded, run.recorded);
    rate.last_recorded = std::max(rate.last_recorded, run.recorded);
    if (run.tokens_per_s) {
      per_s.push_back(*run.tokens_per_s);
    }
  }
  if (per_s.size() == runs.size()) {
    rate.tokens_per_s = median_of(per_s);
  }
  if (!is_dated) {
    rate.first_recorded = rate.last_recorded = "";
  }
  return rate;
}

double mean_of(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

// The steps of the first time that decides, in pairs where both runs have as many.
std::optional<PairedSteps> paired_steps(const RunSummary& base, const RunSummary& candidate) {
  constexpr std::size_t kLeast = 3;
  const auto gate =
      std::ranges::find_if(base.metrics, [](const RunMetric& metric) { return metric.is_gated; });
  if (gate == base.metrics.end()) {
    return std::nullopt;
  }
  const std::vector<double> before = lengths_of(base, gate->steps);
  const std::vector<double> after = lengths_of(candidate, gate->steps);
  if (std::min(before.size(), after.size()) < kLeast) {
    return std::nullopt;
  }
  PairedSteps steps;
  steps.stage = row_name(gate->steps);
  steps.base_mean_ns = mean_of(before);
  steps.candidate_mean_ns = mean_of(after);
  if (before.size() == after.size()) {
    steps.pairs = static_cast<std::int64_t>(before.size());
    for (std::size_t i = 0; i < before.size(); ++i) {
      steps.shorter += after[i] < before[i] ? 1 : 0;
      steps.longer += after[i] > before[i] ? 1 : 0;
    }
  }
  return steps;
}

// nullptr if no run has it.
const RunMetric* find_in_any(const std::vector<RunSummary>& runs, const std::string& key) {
  for (const RunSummary& run : runs) {
    if (const RunMetric* metric = find_metric(run, key)) {
      return metric;
    }
  }
  return nullptr;
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

// Equal lengths of recordings that hold different work do not mean equal speed.
void make_length_unclear(const std::string& why, std::vector<MetricChange>& metrics) {
  for (MetricChange& row : metrics) {
    if (row.key == kLengthKey && row.is_gated) {
      row.change = Change::kUnclear;
      row.reason = why;
      row.repeats_needed.reset();
    }
  }
}

}  // namespace

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
  // What has a budget may be missing in the first runs.
  for (const MetricBudget& budget : options.budgets) {
    if (find_metric(base[0], budget.key) == nullptr &&
        find_metric(candidate[0], budget.key) == nullptr) {
      const RunMetric* of_base = find_in_any(base, budget.key);
      const RunMetric* metric = of_base != nullptr ? of_base : find_in_any(candidate, budget.key);
      if (metric != nullptr) {
        all.push_back(metric);
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

Comparison judge_limits(const std::vector<RunSummary>& given, const CompareOptions& options) {
  Comparison comparison;
  const std::vector<RunSummary> runs = distinct_runs(given, comparison.repeated);
  comparison.candidate = labels_of(runs);
  comparison.candidate_median = median_run(runs).label;
  comparison.facts = empty_runs(runs, false);
  for (const MetricBudget& budget : options.budgets) {
    const RunMetric* metric = find_in_any(runs, budget.key);
    comparison.metrics.push_back(metric == nullptr
                                     ? absent_metric(budget)
                                     : compare_metric(*metric, {}, runs, options, options.alpha));
  }
  decide(options, comparison);
  return comparison;
}

Comparison compare_runs(const std::vector<RunSummary>& given_base,
                        const std::vector<RunSummary>& given_candidate,
                        const CompareOptions& options) {
  Comparison comparison;
  std::vector<RunSummary> base = distinct_runs(given_base, comparison.repeated);
  std::vector<RunSummary> candidate = distinct_runs(given_candidate, comparison.repeated);
  const std::string why_no_length = choose_deciding_times(base, candidate);
  comparison.base = labels_of(base);
  comparison.candidate = labels_of(candidate);
  comparison.base_rate = rate_of(base);
  comparison.candidate_rate = rate_of(candidate);
  comparison.gpu_hour_price = options.gpu_hour_price;
  comparison.price_unit = options.price_unit;
  if (base.size() == 1 && candidate.size() == 1) {
    comparison.steps = paired_steps(base[0], candidate[0]);
  }
  comparison.facts = check_comparable(base, candidate, options.allowed);
  comparison.metrics = compare_metrics(base, candidate, options);
  if (!why_no_length.empty() &&
      std::ranges::count(comparison.facts, "launches", &FactDifference::fact) > 0) {
    make_length_unclear(why_no_length, comparison.metrics);
  }
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

}  // namespace gpuwhy
