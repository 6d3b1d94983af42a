// SPDX-License-Identifier: Apache-2.0
//
// Sections of a comparison: verdict, differences in the workload, metrics with intervals.
//
// The attribution of the difference is in comparison_parts.cc.
#include <fmt/format.h>

#include "report/comparison.h"
#include "report/comparison_parts.h"
#include "report/section_parts.h"

namespace llmprof {

ReportValue text_value(std::string text) {
  return {Json(std::move(text)), Unit::kText, "", nullptr};
}

Unit metric_unit(const Json& row) {
  const std::string unit = text_of(row, "unit");
  return unit == "ns"       ? Unit::kDuration
         : unit == "1/s"    ? Unit::kRate
         : unit == "number" ? Unit::kCount
                            : Unit::kSmallRatio;
}

std::string metric_judgement(const Json& row) {
  const std::string change = text_of(row, "change");
  const std::string reason = text_of(row, "reason");
  const std::string word = change == "same"     ? "within noise"
                           : change == "worse"  ? "WORSE"
                           : change == "better" ? "better"
                                                : change;
  return reason.empty() ? word : fmt::format("{} ({})", word, reason);
}

namespace {

std::string interval_text(const Json& row) {
  const ReportValue low{field_of(row, "ratio_low"), Unit::kRatio, "", nullptr};
  const ReportValue high{field_of(row, "ratio_high"), Unit::kRatio, "", nullptr};
  const bool is_known = low.value.is_number() && high.value.is_number();
  return is_known ? fmt::format("{} to {}", shown(low), shown(high)) : "n/a";
}

Section verdict_section(const Json& comparison) {
  Section section;
  section.id = "summary";
  section.title = "Comparison";
  section.paragraphs.push_back(
      fmt::format("{}: {}", text_of(comparison, "verdict"), text_of(comparison, "sentence")));
  section.paragraphs.push_back(fmt::format("runs: {} of the base, {} of the candidate",
                                           rows_of(comparison, "base.runs").size(),
                                           rows_of(comparison, "candidate.runs").size()));
  return section;
}

}  // namespace

// Facts that differ between the sides. One that breaks comparability decides the verdict; the
// others are only shown.
Section fingerprint_section(const Json& comparison) {
  Section section;
  section.id = "fingerprint";
  section.title = "What differs in the workload";
  ReportTable table;
  table.columns = {{"fact", "fact", Unit::kText},
                   {"effect", "breaks", Unit::kText},
                   {"base", "base", Unit::kName},
                   {"candidate", "candidate", Unit::kName},
                   {"why", "sentence", Unit::kText}};
  std::size_t place = 0;
  for (const Json& row : rows_of(comparison, "fingerprint")) {
    const std::string key = fmt::format("fingerprint[{}].", place++);
    const bool breaks = field_of(row, "breaks") == Json(true);
    table.rows.push_back({{text_value(text_of(row, "fact")),
                           text_value(breaks ? "not comparable" : "shown"),
                           {field_of(row, "base"), Unit::kName, key + "base", nullptr},
                           {field_of(row, "candidate"), Unit::kName, key + "candidate", nullptr},
                           text_value(text_of(row, "sentence"))},
                          "",
                          false});
  }
  if (table.rows.empty()) {
    section.paragraphs.emplace_back("nothing that is known differs");
  } else {
    section.tables.push_back(std::move(table));
  }
  return section;
}

namespace {

ReportRow metric_row(const Json& row, std::size_t place) {
  const std::string key = fmt::format("metrics[{}].", place);
  const Json& p = field_of(row, "p");
  return {{text_value(field_of(row, "gated") == Json(true) ? "gate" : ""),
           {field_of(row, "base"), metric_unit(row), key + "base", nullptr},
           {field_of(row, "candidate"), metric_unit(row), key + "candidate", nullptr},
           {field_of(row, "ratio"), Unit::kRatio, key + "ratio", nullptr},
           {Json(interval_text(row)), Unit::kRate, "", nullptr},
           {Json(p.is_number() ? fmt::format("{:.2g}", p.get<double>()) : "n/a"), Unit::kRate, "",
            nullptr},
           {field_of(row, "key"), Unit::kName, key + "key", nullptr},
           text_value(metric_judgement(row))},
          "",
          false};
}

}  // namespace

ReportTable metrics_table(const Json& comparison, const MetricFilter& keep) {
  ReportTable table;
  table.columns = {{"role", "gated", Unit::kText},
                   {"base", "base", Unit::kDuration},
                   {"candidate", "candidate", Unit::kDuration},
                   {"change", "ratio", Unit::kRatio},
                   {"interval", "ratio_low", Unit::kRate},
                   {"p", "p", Unit::kRate},
                   {"metric", "key", Unit::kName},
                   {"judged", "change", Unit::kText}};
  // Gated metrics first. The place is the index in the document, so it counts in both rounds.
  for (const bool gated : {true, false}) {
    std::size_t place = 0;
    for (const Json& row : rows_of(comparison, "metrics")) {
      if ((field_of(row, "gated") == Json(true)) == gated && keep(row)) {
        table.rows.push_back(metric_row(row, place));
      }
      ++place;
    }
  }
  return table;
}

bool is_told_metric(const Json& row) {
  const std::string change = text_of(row, "change");
  return field_of(row, "gated") == Json(true) || change == "worse" || change == "better";
}

Section metrics_section(const Json& comparison, bool has_all) {
  Section section;
  section.id = "metrics";
  section.title = "What changed";
  section.tables.push_back(
      metrics_table(comparison, [&](const Json& row) { return has_all || is_told_metric(row); }));
  const std::size_t left_out =
      rows_of(comparison, "metrics").size() - section.tables[0].rows.size();
  if (left_out > 0) {
    section.notes.push_back(
        fmt::format("{} more metrics did not change beyond doubt: --all-metrics", left_out));
  }
  section.notes.emplace_back(
      "runs of a side are taken as exchangeable: interleave them; how the verdict is made: "
      "docs/ci.md");
  return section;
}

Document comparison_document(const Json& comparison, std::size_t top, bool has_all_metrics) {
  Document document;
  document.sections = {verdict_section(comparison), fingerprint_section(comparison),
                       metrics_section(comparison, has_all_metrics), buckets_section(comparison),
                       moved_section(comparison, top)};
  if (has_operators(comparison)) {
    document.sections.push_back(operator_moves_section(comparison, top));
  }
  return document;
}

}  // namespace llmprof
