// SPDX-License-Identifier: Apache-2.0
//
// Sections of a comparison: verdict, differences in the workload, metrics with intervals.
//
// The attribution of the difference is in comparison_parts.cc.
#include <algorithm>
#include <iterator>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/text.h"
#include "report/comparison/comparison.h"
#include "report/comparison/comparison_parts.h"
#include "report/comparison/comparison_tables.h"

namespace gpuwhy {

std::string verdict_line(const Comparison& comparison) {
  // "inconclusive" says that it is not decided.
  const bool is_open = comparison.verdict == Decision::kInconclusive;
  return fmt::format("{}: {}", decision_name(comparison.verdict),
                     printable(is_open ? comparison.reasons : comparison.sentence()));
}

ReportValue text_value(std::string text) {
  return {std::move(text), CellFormat::kText, ""};
}

CellFormat metric_unit(const MetricChange& metric) {
  return metric.unit == "ns"       ? CellFormat::kDuration
         : metric.unit == "1/s"    ? CellFormat::kRate
         : metric.unit == "number" ? CellFormat::kCount
                                   : CellFormat::kSmallRatio;
}

namespace {

std::string change_limit_text(const MetricChange& metric) {
  return fmt::format("{}{:g} %", metric.is_larger_better ? "-" : "+", metric.limit_fraction * 100);
}

}  // namespace

SmallChangeWords small_change_words(const MetricChange& metric) {
  const std::string limit = fmt::format("{:g} %", metric.limit_fraction * 100);
  if (metric.is_within_limit) {
    return {metric.reason, "within its limit", "That is within its limit."};
  }
  if (metric.has_change_budget) {
    return {fmt::format("within budget ({}, limit {})",
                        shown({metric.ratio.value_or(1), CellFormat::kRatio, ""}),
                        change_limit_text(metric)),
            "within budget", fmt::format("That is within its budget of {}.", limit)};
  }
  // Agrees with the interval beside it: one without 0 in it is a change, if a small one.
  const bool is_up = metric.ratio_low.value_or(0) > 1;
  const bool is_down = metric.ratio_high.value_or(2) < 1;
  if (!is_up && !is_down) {
    return {"no significant change", "within noise", "That is no more than chance explains."};
  }
  const bool is_rate = metric.is_larger_better;
  if (is_up != is_rate) {
    return {fmt::format("{}, by less than {}", is_rate ? "lower" : "longer", limit),
            "less than " + limit,
            fmt::format("That is less than the {} that would matter.", limit)};
  }
  return {fmt::format("{}, not surely by {}", is_rate ? "higher" : "shorter", limit),
          is_rate ? "no lower" : "no longer than before",
          fmt::format("It is no worse; whether it is better by {} is not certain.", limit)};
}

std::string gate_limit_text(const MetricChange& metric) {
  if (!metric.is_gated) {
    return "";
  }
  const std::string value = limit_text(metric);
  const bool is_change_broken = metric.change == Change::kWorse && !metric.broken_limit;
  // What is not decided is the test against the base.
  const bool is_open = metric.change == Change::kUnclear && metric.ratio && !metric.broken_limit;
  const bool has_change = metric.has_change_budget || value.empty() || is_change_broken || is_open;
  const std::string change = has_change ? change_limit_text(metric) : "";
  return value.empty() || change.empty() ? value + change : change + ", " + value;
}

std::string metric_judgement(const MetricChange& metric) {
  if (metric.change == Change::kSame) {
    return small_change_words(metric).cell;
  }
  // A value beyond its limit need not be worse than before.
  const char* word = metric.change != Change::kWorse ? change_name(metric.change)
                     : metric.broken_limit           ? "OUTSIDE"
                                                     : "WORSE";
  const std::string limit =
      metric.broken_limit ? fmt::format("{} {}: ", metric.is_limit_above ? "at most" : "at least",
                                        shown({*metric.broken_limit, metric_unit(metric), ""}))
                          : "";
  return metric.reason.empty() ? word : fmt::format("{} ({}{})", word, limit, metric.reason);
}

namespace {

std::string interval_text(const MetricChange& row) {
  if (!row.ratio_low || !row.ratio_high || !row.interval_level) {
    return "n/a";
  }
  return fmt::format("{} to {} ({})", shown({*row.ratio_low, CellFormat::kRatio, ""}),
                     shown({*row.ratio_high, CellFormat::kRatio, ""}),
                     level_text(*row.interval_level));
}

Section verdict_section(const Comparison& comparison) {
  Section section;
  section.id = "summary";
  section.title = "Comparison";
  // What cannot be compared is told before any number.
  const std::string verdict = "Verdict: " + verdict_line(comparison);
  const bool is_refused = comparison.verdict == Decision::kInvalid;
  if (is_refused) {
    section.paragraphs.push_back(verdict);
  }
  section.paragraphs.push_back(measured_change(comparison));
  std::ranges::move(told_sentences(comparison), std::back_inserter(section.paragraphs));
  if (!is_refused) {
    section.paragraphs.push_back(verdict);
  }
  section.paragraphs.push_back(runs_sentence(comparison));
  return section;
}

}  // namespace

Section fingerprint_section(const Comparison& comparison) {
  using F = FactDifference;
  const ChangeColumns<F> columns = {
      {{"fact", "fact", CellFormat::kText, false, true}, &F::fact},
      {{"effect", "breaks", CellFormat::kText},
       [](const F& row) { return row.breaks ? "not comparable" : "shown"; }},
      {{"base", "base", CellFormat::kName}, &F::base},
      {{"candidate", "candidate", CellFormat::kName}, &F::candidate},
      {{"why", "sentence", CellFormat::kText}, &F::sentence}};
  Section section;
  section.id = "fingerprint";
  section.title = "What differs in the workload";
  if (comparison.facts.empty()) {
    section.paragraphs.emplace_back(
        "GPU, model, inputs and command are the same, as far as they were recorded.");
    return section;
  }
  section.tables.push_back(empty_table(columns));
  for (const FactDifference& row : comparison.facts) {
    add_row(columns, row, "", section.tables.back());
  }
  return section;
}

namespace {

// Adds a metric; its values are shown by its unit.
void add_metric(const ChangeColumns<MetricChange>& columns, const Comparison& comparison,
                std::size_t place, ReportTable& table) {
  const MetricChange& row = comparison.metrics[place];
  ReportRow& made = add_row(columns, row, fmt::format("metrics[{}].", place), table);
  for (std::size_t i = 0; i < columns.size(); ++i) {
    if (table.columns[i].unit == CellFormat::kDuration) {
      made.cells[i].unit = metric_unit(row);
    }
  }
}

}  // namespace

ReportTable metrics_table(const Comparison& comparison, const MetricFilter& keep) {
  using M = MetricChange;
  const ChangeColumns<M> columns = {
      {{"role", "gated", CellFormat::kText},
       [](const M& row) { return row.is_gated ? "gate" : ""; }},
      {{"base", "base", CellFormat::kDuration}, [](const M& row) { return cell_of(row.base); }},
      {{"candidate", "candidate", CellFormat::kDuration},
       [](const M& row) { return cell_of(row.candidate); }},
      {{"change", "ratio", CellFormat::kRatio}, [](const M& row) { return cell_of(row.ratio); }},
      {{"limit", "limit_fraction", CellFormat::kText}, gate_limit_text},
      {{"interval (level)", "ratio_low", CellFormat::kRate}, interval_text},
      {{"p", "p", CellFormat::kRate},
       [](const M& row) { return row.p ? fmt::format("{:.2g}", *row.p) : "n/a"; }},
      {{"metric", "key", CellFormat::kName, false, true},
       [](const M& row) { return metric_label(row.key); }},
      {{"judged", "change", CellFormat::kText}, metric_judgement}};
  ReportTable table = empty_table(columns);
  // Gated metrics first. The place is the index in the document, so it counts in both rounds.
  for (const bool gated : {true, false}) {
    for (std::size_t i = 0; i < comparison.metrics.size(); ++i) {
      const MetricChange& row = comparison.metrics[i];
      if (row.is_gated == gated && keep(row)) {
        add_metric(columns, comparison, i, table);
      }
    }
  }
  return table;
}

bool is_told_metric(const MetricChange& row) {
  return row.is_gated || row.change == Change::kWorse || row.change == Change::kBetter;
}

Section metrics_section(const Comparison& comparison, bool has_all) {
  Section section;
  section.id = "metrics";
  section.title = "What changed";
  section.tables.push_back(metrics_table(
      comparison, [&](const MetricChange& row) { return has_all || is_told_metric(row); }));
  std::size_t num_same = 0;
  std::size_t num_unjudged = 0;
  for (const MetricChange& row : comparison.metrics) {
    const bool is_left_out = !has_all && !is_told_metric(row);
    num_same += is_left_out && row.change == Change::kSame ? 1 : 0;
    num_unjudged += is_left_out && row.change != Change::kSame ? 1 : 0;
  }
  const auto add_count = [&](std::size_t count, const char* words) {
    if (count > 0) {
      section.notes.push_back(fmt::format("{} other {} {} (--all-metrics shows {}).", count,
                                          count == 1 ? "metric:" : "metrics:", words,
                                          count == 1 ? "it" : "them"));
    }
  };
  std::vector<std::string> keys;
  for (const MetricChange& row : comparison.metrics) {
    // The pace of a recording is of two runs, and no run has it as a number.
    if (row.is_gated && metric_label(row.key) != row.key && !row.key.starts_with("pace.")) {
      keys.push_back(fmt::format("{} is {}", metric_label(row.key), printable(row.key)));
    }
  }
  if (!keys.empty()) {
    section.notes.push_back(fmt::format("Keys for budgets: {}.", fmt::join(keys, "; ")));
  }
  add_count(num_same, "no change that matters");
  add_count(num_unjudged, "not judged");
  if (std::ranges::any_of(comparison.metrics,
                          [](const MetricChange& row) { return row.method == "runs"; })) {
    section.notes.emplace_back(
        "base and candidate: medians of the runs. change: the median ratio over all pairs of runs, "
        "with its confidence interval.");
  }
  section.notes.emplace_back(
      "The test assumes that runs of a side are exchangeable, so interleave them. docs/ci.md says how "
      "the verdict is made.");
  return section;
}

Section limits_section(const Comparison& comparison) {
  using M = MetricChange;
  const ChangeColumns<M> columns = {{{"median", "candidate", CellFormat::kDuration},
                                     [](const M& row) { return cell_of(row.candidate); }},
                                    {{"limit", "limit", CellFormat::kText}, limit_text},
                                    {{"metric", "key", CellFormat::kName, false, true},
                                     [](const M& row) { return metric_label(row.key); }},
                                    {{"judged", "change", CellFormat::kText}, metric_judgement}};
  Section section;
  section.id = "metrics";
  section.title = "Values and their limits";
  section.tables.push_back(empty_table(columns));
  for (std::size_t i = 0; i < comparison.metrics.size(); ++i) {
    add_metric(columns, comparison, i, section.tables.back());
  }
  return section;
}

Document comparison_document(const Comparison& comparison, std::size_t top, bool has_all_metrics) {
  if (comparison.base.empty()) {
    return {"", {verdict_section(comparison), limits_section(comparison)}};
  }
  if (has_failed_run(comparison)) {
    return {"", {verdict_section(comparison), fingerprint_section(comparison)}};
  }
  Document document;
  document.sections = {verdict_section(comparison), fingerprint_section(comparison),
                       metrics_section(comparison, has_all_metrics)};
  // Without a GPU operators are all there is.
  if (!comparison.ledgers.empty() || !comparison.kernels.empty()) {
    document.sections.push_back(buckets_section(comparison));
    document.sections.push_back(moved_section(comparison, top));
  }
  if (has_model(comparison)) {
    document.sections.push_back(model_moves_section(comparison, top));
  }
  if (has_operators(comparison)) {
    document.sections.push_back(operator_moves_section(comparison, top));
  }
  return document;
}

}  // namespace gpuwhy
