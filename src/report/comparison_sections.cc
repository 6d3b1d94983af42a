// SPDX-License-Identifier: Apache-2.0
//
// A comparison for people: the verdict, what differs in the workload, the metrics with their
// intervals, and where the difference went.
#include <cmath>

#include <fmt/format.h>

#include "base/json_path.h"
#include "base/units.h"
#include "report/comparison.h"
#include "report/section_parts.h"

namespace llmprof {
namespace {

Unit unit_of(const Json& row) {
  const std::string unit = text_of(row, "unit");
  return unit == "ns" ? Unit::kDuration : unit == "1/s" ? Unit::kRate : Unit::kSmallRatio;
}

std::string percent(const Json& ratio) {
  return ratio.is_number() ? fmt::format("{:+.2f} %", (ratio.get<double>() - 1) * 100) : "n/a";
}

std::string signed_duration(std::int64_t ns) {
  return fmt::format("{}{}", ns < 0 ? "-" : "+", format_duration_ns(std::abs(ns)));
}

ReportValue text_value(std::string text) {
  return {Json(std::move(text)), Unit::kText, "", nullptr};
}

// Within noise is said in words, never shown as a change.
std::string judgement(const Json& row) {
  const std::string change = text_of(row, "change");
  const std::string reason = text_of(row, "reason");
  const std::string word = change == "same"     ? "within noise"
                           : change == "worse"  ? "WORSE"
                           : change == "better" ? "better"
                                                : change;
  return reason.empty() ? word : fmt::format("{} ({})", word, reason);
}

std::string interval_text(const Json& row) {
  const Json& low = field_of(row, "ratio_low");
  const Json& high = field_of(row, "ratio_high");
  if (!low.is_number() || !high.is_number()) {
    return "n/a";
  }
  return fmt::format("{} to {}", percent(low), percent(high));
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
                          ""});
  }
  if (table.rows.empty()) {
    section.paragraphs.emplace_back("nothing that is known differs");
  } else {
    section.tables.push_back(std::move(table));
  }
  return section;
}

Section metrics_section(const Json& comparison, bool has_all) {
  Section section;
  section.id = "metrics";
  section.title = "What changed";
  ReportTable table;
  table.columns = {{"", "gated", Unit::kText},
                   {"base", "base", Unit::kDuration},
                   {"candidate", "candidate", Unit::kDuration},
                   {"change", "ratio", Unit::kRate},
                   {"interval", "ratio_low", Unit::kRate},
                   {"p", "p", Unit::kRate},
                   {"metric", "key", Unit::kName},
                   {"judged", "change", Unit::kText}};
  std::size_t left_out = 0;
  for (const bool gated : {true, false}) {
    for (const Json& row : rows_of(comparison, "metrics")) {
      if ((field_of(row, "gated") == Json(true)) != gated) {
        continue;
      }
      const std::string change = text_of(row, "change");
      if (!gated && !has_all && change != "worse" && change != "better") {
        ++left_out;
        continue;
      }
      const std::string key = fmt::format("metrics[key={}].", text_of(row, "key"));
      const Json& p = field_of(row, "p");
      table.rows.push_back(
          {{text_value(gated ? "gate" : ""),
            {field_of(row, "base"), unit_of(row), key + "base", nullptr},
            {field_of(row, "candidate"), unit_of(row), key + "candidate", nullptr},
            text_value(percent(field_of(row, "ratio"))),
            text_value(interval_text(row)),
            text_value(p.is_number() ? fmt::format("{:.2g}", p.get<double>()) : std::string("n/a")),
            {field_of(row, "key"), Unit::kName, key + "key", nullptr},
            text_value(judgement(row))},
           ""});
    }
  }
  section.tables.push_back(std::move(table));
  if (left_out > 0) {
    section.notes.push_back(
        fmt::format("{} more metrics did not change beyond doubt: --all-metrics", left_out));
  }
  section.notes.emplace_back(
      "runs of a side are taken as exchangeable: interleave them; how the verdict is made: "
      "docs/ci.md");
  return section;
}

Section where_section(const Json& comparison) {
  Section section;
  section.id = "where";
  section.title = "Where the difference went, by bucket";
  ReportTable table;
  table.columns = {{"stage", "stage", Unit::kName},
                   {"GPU", "device", Unit::kText},
                   {"bucket", "bucket", Unit::kText},
                   {"base", "base_ns", Unit::kDuration},
                   {"candidate", "candidate_ns", Unit::kDuration},
                   {"difference", "difference_ns", Unit::kRate}};
  for (const Json& ledger : rows_of(comparison, "ledgers")) {
    // The stage `all` is the capture by another name.
    if (text_of(ledger, "stage") == "all") {
      continue;
    }
    const std::string key = "ledgers[" + row_choice(ledger, {"stage", "device"}) + "]";
    const auto add = [&](const Json& row, const std::string& bucket, const std::string& at) {
      table.rows.push_back(
          {{{field_of(ledger, "stage"), Unit::kName, key + ".stage", nullptr},
            {field_of(ledger, "device"), Unit::kText, key + ".device", nullptr},
            text_value(bucket),
            {field_of(row, "base_ns"), Unit::kDuration, at + ".base_ns", nullptr},
            {field_of(row, "candidate_ns"), Unit::kDuration, at + ".candidate_ns", nullptr},
            text_value(signed_duration(integer_of(row, "difference_ns")))},
           ""});
    };
    for (const Json& bucket : rows_of(ledger, "buckets")) {
      if (integer_of(bucket, "difference_ns") != 0) {
        add(bucket, text_of(bucket, "bucket"),
            key + ".buckets[" + row_choice(bucket, {"bucket"}) + "]");
      }
    }
    add(ledger, "= window", key);
  }
  if (table.rows.empty()) {
    section.missing = "n/a (no GPU activity with times on both sides)";
  } else {
    section.tables.push_back(std::move(table));
  }
  return section;
}

std::string kernel_label(const Json& row) {
  const std::string by = text_of(row, "replaced_by");
  return text_of(row, "kernel") + (by.empty() ? "" : " -> " + by);
}

ReportRow kernel_row(const Json& row, std::size_t place) {
  const std::string key = fmt::format("kernels[{}].", place);
  const std::string shapes = field_of(row, "shapes_changed") == Json(true) ? ", other shapes" : "";
  const Json& significant = field_of(row, "significant");
  return {{text_value(signed_duration(integer_of(row, "difference_ns"))),
           text_value(signed_duration(integer_of(row, "launches_ns"))),
           text_value(signed_duration(integer_of(row, "duration_ns"))),
           text_value(fmt::format("{} -> {}", integer_of(row, "base_calls"),
                                  integer_of(row, "candidate_calls"))),
           text_value(text_of(row, "kind") + shapes +
                      (significant == Json(false) ? ", within noise" : "")),
           {field_of(row, "family"), Unit::kText, key + "family", nullptr},
           {field_of(row, "stage"), Unit::kName, key + "stage", nullptr},
           {field_of(row, "device"), Unit::kText, key + "device", nullptr},
           {Json(kernel_label(row)), Unit::kName, key + "kernel", nullptr}},
          ""};
}

Section moved_section(const Json& comparison, std::size_t top) {
  Section section;
  section.id = "kernels";
  section.title = "Where the difference went, by kernel";
  ReportTable table;
  table.columns = {{"difference", "difference_ns", Unit::kRate},
                   {"by launches", "launches_ns", Unit::kRate},
                   {"by duration", "duration_ns", Unit::kRate},
                   {"calls", "calls", Unit::kText},
                   {"what", "kind", Unit::kText},
                   {"family", "family", Unit::kText},
                   {"stage", "stage", Unit::kName},
                   {"GPU", "device", Unit::kText},
                   {"kernel", "kernel", Unit::kName}};
  std::size_t place = 0;
  std::int64_t shown_ns = 0;
  const Json& rows = rows_of(comparison, "kernels");
  for (const Json& row : rows) {
    if (table.rows.size() < top && integer_of(row, "difference_ns") != 0) {
      table.rows.push_back(kernel_row(row, place));
      shown_ns += integer_of(row, "difference_ns");
    }
    ++place;
  }
  if (rows.empty()) {
    section.missing = "n/a (no kernels were recorded)";
    return section;
  }
  const std::int64_t whole = integer_of(comparison, "kernel_time.difference_ns");
  section.notes.push_back(
      fmt::format("{} of {} rows, {} of {} ns; all rows sum to {} ns, and {} ns are in no row",
                  table.rows.size(), rows.size(), shown_ns, whole,
                  integer_of(comparison, "kernel_time.rows_ns"),
                  integer_of(comparison, "kernel_time.not_in_rows_ns")));
  section.notes.push_back(fmt::format("of one run a side: {} against {}",
                                      text_of(comparison, "candidate.median_run"),
                                      text_of(comparison, "base.median_run")));
  section.tables.push_back(std::move(table));
  return section;
}

}  // namespace

Document comparison_document(const Json& comparison, std::size_t top, bool has_all_metrics) {
  Document document;
  document.sections = {verdict_section(comparison), fingerprint_section(comparison),
                       metrics_section(comparison, has_all_metrics), where_section(comparison),
                       moved_section(comparison, top)};
  return document;
}

}  // namespace llmprof
