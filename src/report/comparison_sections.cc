// SPDX-License-Identifier: Apache-2.0
//
// Sections of a comparison: verdict, differences in the workload, metrics with intervals.
//
// The attribution of the difference is in comparison_parts.cc.
#include <algorithm>

#include <fmt/format.h>

#include "base/text.h"
#include "report/comparison.h"
#include "report/comparison_parts.h"

namespace llmprof {

ReportValue text_value(std::string text) {
  return {std::move(text), Unit::kText, ""};
}

Unit metric_unit(const MetricChange& metric) {
  return metric.unit == "ns"       ? Unit::kDuration
         : metric.unit == "1/s"    ? Unit::kRate
         : metric.unit == "number" ? Unit::kCount
                                   : Unit::kSmallRatio;
}

std::string metric_judgement(const MetricChange& metric) {
  const char* word = metric.change == Change::kSame    ? "no significant change"
                     : metric.change == Change::kWorse ? metric.base ? "WORSE" : "OUTSIDE"
                                                       : change_name(metric.change);
  if (metric.change == Change::kSame && !metric.reason.empty()) {
    return metric.reason;  // a limit on the value was kept
  }
  const std::string limit =
      metric.broken_limit ? fmt::format(": {} {}", metric.is_limit_above ? "at most" : "at least",
                                        shown({*metric.broken_limit, metric_unit(metric), ""}))
                          : "";
  return metric.reason.empty() ? word : fmt::format("{} ({}{})", word, metric.reason, limit);
}

namespace {

std::string interval_text(const MetricChange& row) {
  if (!row.ratio_low || !row.ratio_high || !row.interval_level) {
    return "n/a";
  }
  return fmt::format("{} to {} ({})", shown({*row.ratio_low, Unit::kRatio, ""}),
                     shown({*row.ratio_high, Unit::kRatio, ""}), level_text(*row.interval_level));
}

Section verdict_section(const Comparison& comparison) {
  Section section;
  section.id = "summary";
  section.title = "Comparison";
  section.paragraphs.push_back(measured_change(comparison));
  for (const MovedWait& row : comparison.moved_waits) {
    section.paragraphs.push_back(moved_wait_text(row));
  }
  section.paragraphs.push_back(fmt::format("Verdict: {}: {}", verdict_name(comparison.verdict),
                                           printable(comparison.sentence)));
  section.paragraphs.push_back(runs_sentence(comparison));
  return section;
}

}  // namespace

Section fingerprint_section(const Comparison& comparison) {
  Section section;
  section.id = "fingerprint";
  section.title = "What differs in the workload";
  ReportTable table;
  table.columns = {{"fact", "fact", Unit::kText, false, true},
                   {"effect", "breaks", Unit::kText},
                   {"base", "base", Unit::kName},
                   {"candidate", "candidate", Unit::kName},
                   {"why", "sentence", Unit::kText}};
  std::size_t place = 0;
  for (const FactDifference& row : comparison.facts) {
    const std::string key = fmt::format("fingerprint[{}].", place++);
    table.rows.push_back({{text_value(row.fact),
                           text_value(row.breaks ? "not comparable" : "shown"),
                           {row.base, Unit::kName, key + "base"},
                           {row.candidate, Unit::kName, key + "candidate"},
                           text_value(row.sentence)},
                          "",
                          false});
  }
  if (table.rows.empty()) {
    section.paragraphs.emplace_back("No difference was found in GPU, model, inputs or command.");
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
           {cell_of(row.ratio), Unit::kRatio, key + "ratio"},
           {interval_text(row), Unit::kRate, ""},
           {row.p ? fmt::format("{:.2g}", *row.p) : "n/a", Unit::kRate, ""},
           {metric_label(row.key), Unit::kName, key + "key"},
           text_value(metric_judgement(row))},
          "",
          false};
}

}  // namespace

ReportTable metrics_table(const Comparison& comparison, const MetricFilter& keep) {
  ReportTable table;
  table.columns = {{"role", "gated", Unit::kText},
                   {"base", "base", Unit::kDuration},
                   {"candidate", "candidate", Unit::kDuration},
                   {"change", "ratio", Unit::kRatio},
                   {"interval (level)", "ratio_low", Unit::kRate},
                   {"p", "p", Unit::kRate},
                   {"metric", "key", Unit::kName, false, true},
                   {"judged", "change", Unit::kText}};
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
  add_count(num_same, "no significant change");
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
  table.columns = {{"median", "candidate", Unit::kDuration},
                   {"limit", "limit", Unit::kText},
                   {"metric", "key", Unit::kName, false, true},
                   {"judged", "change", Unit::kText}};
  for (std::size_t i = 0; i < comparison.metrics.size(); ++i) {
    const MetricChange& row = comparison.metrics[i];
    const std::string key = fmt::format("metrics[{}].", i);
    table.rows.push_back({{{cell_of(row.candidate), metric_unit(row), key + "candidate"},
                           text_value(limit_text(row)),
                           {metric_label(row.key), Unit::kName, key + "key"},
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
                       metrics_section(comparison, has_all_metrics), buckets_section(comparison),
                       moved_section(comparison, top)};
  if (has_model(comparison)) {
    document.sections.push_back(model_moves_section(comparison, top));
  }
  if (has_operators(comparison)) {
    document.sections.push_back(operator_moves_section(comparison, top));
  }
  return document;
}

}  // namespace llmprof
