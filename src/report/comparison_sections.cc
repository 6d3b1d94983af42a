// SPDX-License-Identifier: Apache-2.0
//
// Sections of a comparison: verdict, differences in the workload, metrics with intervals.
//
// The attribution of the difference is in comparison_parts.cc.
#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/text.h"
#include "report/comparison.h"
#include "report/comparison_parts.h"

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

SmallChange small_change(const MetricChange& metric) {
  if (metric.is_within_limit) {
    return SmallChange::kInLimit;
  }
  if (metric.has_change_budget) {
    return SmallChange::kInBudget;
  }
  const bool is_up = metric.ratio_low.value_or(0) > 1;
  const bool is_down = metric.ratio_high.value_or(2) < 1;
  if (!is_up && !is_down) {
    return SmallChange::kNoise;
  }
  return is_up != metric.is_larger_better ? SmallChange::kLonger : SmallChange::kShorter;
}

namespace {

std::string change_limit_text(const MetricChange& metric) {
  return fmt::format("{}{:g} %", metric.is_larger_better ? "-" : "+", metric.limit_fraction * 100);
}

// Agrees with the interval beside it: one without 0 in it is a change, if a small one.
std::string small_change_text(const MetricChange& metric) {
  const char* worse = metric.is_larger_better ? "lower" : "longer";
  const char* better = metric.is_larger_better ? "higher" : "shorter";
  switch (small_change(metric)) {
    case SmallChange::kInLimit:
      return metric.reason;
    case SmallChange::kInBudget:
      return fmt::format("within budget ({}, limit {})",
                         shown({metric.ratio.value_or(1), CellFormat::kRatio, ""}),
                         change_limit_text(metric));
    case SmallChange::kLonger:
      return fmt::format("{}, by less than {:g} %", worse, metric.limit_fraction * 100);
    case SmallChange::kShorter:
      return fmt::format("{}, not surely by {:g} %", better, metric.limit_fraction * 100);
    case SmallChange::kNoise:
      break;
  }
  return "no significant change";
}

}  // namespace

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
    return small_change_text(metric);
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
  for (const std::string& sentence :
       {cause_sentence(comparison), promise_sentence(comparison), worth_sentence(comparison)}) {
    if (!sentence.empty()) {
      section.paragraphs.push_back(sentence);
    }
  }
  for (const MovedWait& row : comparison.moved_waits) {
    section.paragraphs.push_back(moved_wait_text(row));
  }
  if (!is_refused) {
    section.paragraphs.push_back(verdict);
  }
  section.paragraphs.push_back(runs_sentence(comparison));
  return section;
}

}  // namespace

Section fingerprint_section(const Comparison& comparison) {
  Section section;
  section.id = "fingerprint";
  section.title = "What differs in the workload";
  ReportTable table;
  table.columns = {{"fact", "fact", CellFormat::kText, false, true},
                   {"effect", "breaks", CellFormat::kText},
                   {"base", "base", CellFormat::kName},
                   {"candidate", "candidate", CellFormat::kName},
                   {"why", "sentence", CellFormat::kText}};
  std::size_t place = 0;
  for (const FactDifference& row : comparison.facts) {
    const std::string key = fmt::format("fingerprint[{}].", place++);
    table.rows.push_back({{text_value(row.fact),
                           text_value(row.breaks ? "not comparable" : "shown"),
                           {row.base, CellFormat::kName, key + "base"},
                           {row.candidate, CellFormat::kName, key + "candidate"},
                           text_value(row.sentence)},
                          "",
                          false});
  }
  if (table.rows.empty()) {
    section.paragraphs.emplace_back(
        "GPU, model, inputs and command are the same, as far as they were recorded.");
  } else {
    section.tables.push_back(std::move(table));
  }
  return section;
}

namespace {

ReportRow metric_row(const MetricChange& row, std::size_t place) {
  const std::string key = fmt::format("metrics[{}].", place);
  return {{text_value(row.is_gated ? "gate" : ""),
           {cell_of(row.base), metric_unit(row), key + "base"},
           {cell_of(row.candidate), metric_unit(row), key + "candidate"},
           {cell_of(row.ratio), CellFormat::kRatio, key + "ratio"},
           text_value(gate_limit_text(row)),
           {interval_text(row), CellFormat::kRate, ""},
           {row.p ? fmt::format("{:.2g}", *row.p) : "n/a", CellFormat::kRate, ""},
           {metric_label(row.key), CellFormat::kName, key + "key"},
           text_value(metric_judgement(row))},
          "",
          false};
}

}  // namespace

ReportTable metrics_table(const Comparison& comparison, const MetricFilter& keep) {
  ReportTable table;
  table.columns = {{"role", "gated", CellFormat::kText},
                   {"base", "base", CellFormat::kDuration},
                   {"candidate", "candidate", CellFormat::kDuration},
                   {"change", "ratio", CellFormat::kRatio},
                   {"limit", "limit_fraction", CellFormat::kText},
                   {"interval (level)", "ratio_low", CellFormat::kRate},
                   {"p", "p", CellFormat::kRate},
                   {"metric", "key", CellFormat::kName, false, true},
                   {"judged", "change", CellFormat::kText}};
  // Gated metrics first. The place is the index in the document, so it counts in both rounds.
  for (const bool gated : {true, false}) {
    for (std::size_t i = 0; i < comparison.metrics.size(); ++i) {
      const MetricChange& row = comparison.metrics[i];
      if (row.is_gated == gated && keep(row)) {
        table.rows.push_back(metric_row(row, i));
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
  Section section;
  section.id = "metrics";
  section.title = "Values and their limits";
  ReportTable table;
  table.columns = {{"median", "candidate", CellFormat::kDuration},
                   {"limit", "limit", CellFormat::kText},
                   {"metric", "key", CellFormat::kName, false, true},
                   {"judged", "change", CellFormat::kText}};
  for (std::size_t i = 0; i < comparison.metrics.size(); ++i) {
    const MetricChange& row = comparison.metrics[i];
    const std::string key = fmt::format("metrics[{}].", i);
    table.rows.push_back({{{cell_of(row.candidate), metric_unit(row), key + "candidate"},
                           text_value(limit_text(row)),
                           {metric_label(row.key), CellFormat::kName, key + "key"},
                           text_value(metric_judgement(row))},
                          "",
                          false});
  }
  section.tables.push_back(std::move(table));
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
