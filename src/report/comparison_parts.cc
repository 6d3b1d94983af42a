// SPDX-License-Identifier: Apache-2.0
//
// Sections of a comparison that attribute the difference to families, buckets, kernels and
// operators.
//
// Each table states what its rows omit, so that its sum is the measured difference.
#include "report/comparison_parts.h"

#include <algorithm>

#include <fmt/format.h>

#include "report/section_parts.h"

namespace llmprof {
namespace {

ReportValue difference_at(const Json& row, const std::string& key, const char* field) {
  return {field_of(row, field), Unit::kDifference, key + field, nullptr};
}

ReportValue duration_at(const Json& row, const std::string& key, const char* field) {
  return {field_of(row, field), Unit::kDuration, key + field, nullptr};
}

ReportValue no_value(Unit unit) {
  return {Json(""), unit, "", nullptr};
}

// Whether a row changed beyond noise, in words.
std::string sureness(const Json& row) {
  const Json& p = field_of(row, "p");
  if (!p.is_number()) {
    return "n/a";
  }
  const bool is_sure = field_of(row, "significant") == Json(true);
  return fmt::format("{} (p {:.2g}, adjusted {:.2g})", is_sure ? "beyond noise" : "within noise",
                     p.get<double>(), number_of(row, "adjusted_p"));
}

// Names with base, candidate and difference: the largest ones, the others, the remainder, the sum.
ReportTable parts_table(const Json& parts, const std::string& array, const char* field,
                        const Json& whole, const std::string& whole_key, const char* rest) {
  constexpr std::size_t kMost = 12;
  ReportTable table;
  table.columns = {{field, field, Unit::kText},
                   {"difference", "difference_ns", Unit::kDifference, true},
                   {"base", "base_ns", Unit::kDuration},
                   {"candidate", "candidate_ns", Unit::kDuration}};
  std::size_t place = 0;
  std::int64_t others_ns = 0;
  std::size_t others = 0;
  std::int64_t rows_ns = 0;
  for (const Json& row : parts) {
    const std::string key = fmt::format("{}[{}].", array, place++);
    const std::int64_t difference = integer_of(row, "difference_ns");
    rows_ns += difference;
    if (difference != 0 && table.rows.size() < kMost) {
      table.rows.push_back({{{field_of(row, field), Unit::kText, key + field, nullptr},
                             difference_at(row, key, "difference_ns"),
                             duration_at(row, key, "base_ns"),
                             duration_at(row, key, "candidate_ns")},
                            "",
                            false});
    } else {
      others_ns += difference;
      ++others;
    }
  }
  const auto add = [&](const std::string& name, std::int64_t difference_ns) {
    table.rows.push_back({{text_value(name),
                           {difference_ns, Unit::kDifference, "", nullptr},
                           no_value(Unit::kDuration),
                           no_value(Unit::kDuration)},
                          "",
                          false});
  };
  if (others > 0) {
    add(fmt::format("{} {}", others, others == 1 ? "other" : "others"), others_ns);
  }
  const std::int64_t rest_ns = integer_of(whole, "difference_ns") - rows_ns;
  if (rest_ns != 0) {
    add(rest, rest_ns);
  }
  table.rows.push_back(
      {{text_value("= all"), difference_at(whole, whole_key, "difference_ns"),
        duration_at(whole, whole_key, "base_ns"), duration_at(whole, whole_key, "candidate_ns")},
       "",
       true});
  return table;
}

ReportRow bucket_row(const Json& ledger, const std::string& at, const Json& row,
                     const std::string& key, const std::string& bucket) {
  return {{{field_of(ledger, "stage"), Unit::kName, at + "stage", nullptr},
           {field_of(ledger, "device"), Unit::kText, at + "device", nullptr},
           text_value(bucket),
           duration_at(row, key, "base_ns"),
           duration_at(row, key, "candidate_ns"),
           difference_at(row, key, "difference_ns")},
          "",
          &row == &ledger};
}

std::string kernel_label(const Json& row) {
  const std::string by = text_of(row, "replaced_by");
  return text_of(row, "kernel") + (by.empty() ? "" : " -> " + by);
}

std::string calls_text(const Json& row) {
  return fmt::format("{} -> {}", integer_of(row, "base_calls"), integer_of(row, "candidate_calls"));
}

ReportRow kernel_row(const Json& row, std::size_t place) {
  const std::string key = fmt::format("kernels[{}].", place);
  const std::string shapes = field_of(row, "shapes_changed") == Json(true) ? ", other shapes" : "";
  return {{difference_at(row, key, "difference_ns"),
           difference_at(row, key, "launches_ns"),
           difference_at(row, key, "duration_ns"),
           {Json(calls_text(row)), Unit::kCount, "", nullptr},
           text_value(text_of(row, "kind") + shapes),
           {field_of(row, "family"), Unit::kText, key + "family", nullptr},
           {field_of(row, "stage"), Unit::kName, key + "stage", nullptr},
           {field_of(row, "device"), Unit::kText, key + "device", nullptr},
           text_value(sureness(row)),
           {Json(kernel_label(row)), Unit::kName, key + "kernel", nullptr}},
          "",
          false};
}

ReportRow operator_row(const Json& row, std::size_t place) {
  const std::string key = fmt::format("operators.rows[{}].", place);
  return {{difference_at(row, key, "difference_ns"),
           difference_at(row, key, "calls_ns"),
           difference_at(row, key, "duration_ns"),
           {Json(calls_text(row)), Unit::kCount, "", nullptr},
           {field_of(row, "stage"), Unit::kName, key + "stage", nullptr},
           text_value(sureness(row)),
           {field_of(row, "operator"), Unit::kName, key + "operator", nullptr}},
          "",
          false};
}

// A row of the operator table that is not an operator.
ReportRow other_operators_row(ReportValue difference, std::string name, bool is_sum) {
  return {{std::move(difference), no_value(Unit::kDifference), no_value(Unit::kDifference),
           text_value(""), text_value(""), text_value(""), text_value(std::move(name))},
          "",
          is_sum};
}

ReportTable operators_table(const Json& operators, std::size_t top) {
  ReportTable table;
  table.title = "By operator";
  table.columns = {{"difference", "difference_ns", Unit::kDifference, true},
                   {"by calls", "calls_ns", Unit::kDifference},
                   {"by duration", "duration_ns", Unit::kDifference},
                   {"calls", "calls", Unit::kCount},
                   {"stage", "stage", Unit::kName},
                   {"sure", "p", Unit::kText},
                   {"operator", "operator", Unit::kName}};
  std::size_t place = 0;
  std::int64_t shown_ns = 0;
  // The place counts over all rows, shown or not: it is the row's index in the document.
  for (const Json& row : rows_of(operators, "rows")) {
    if (table.rows.size() < top && integer_of(row, "difference_ns") != 0) {
      table.rows.push_back(operator_row(row, place));
      shown_ns += integer_of(row, "difference_ns");
    }
    ++place;
  }
  // Shown rows, other rows and time in no operator add up to the last row.
  const std::size_t others = place - table.rows.size();
  if (others > 0) {
    const std::int64_t others_ns = integer_of(operators, "rows_ns") - shown_ns;
    table.rows.push_back(other_operators_row(
        {others_ns, Unit::kDifference, "", nullptr},
        fmt::format("{} other {}", others, others == 1 ? "row" : "rows"), false));
  }
  table.rows.push_back(other_operators_row(difference_at(operators, "operators.", "not_in_rows_ns"),
                                           "in no operator", false));
  table.rows.push_back(
      other_operators_row(difference_at(operators, "operators.", "difference_ns"), "= all", true));
  return table;
}

bool is_tested(const Json& comparison) {
  return rows_of(comparison, "base.runs").size() > 1 &&
         rows_of(comparison, "candidate.runs").size() > 1;
}

// Removes the column if no row was tested.
void drop_sureness(ReportTable& table) {
  const auto sure = std::find_if(table.columns.begin(), table.columns.end(),
                                 [](const ReportColumn& column) { return column.field == "p"; });
  const std::ptrdiff_t place = sure - table.columns.begin();
  table.columns.erase(sure);
  for (ReportRow& row : table.rows) {
    row.cells.erase(row.cells.begin() + place);
  }
}

std::string median_note(const Json& comparison) {
  const std::string runs =
      fmt::format("of one run a side: {} against {}", text_of(comparison, "candidate.median_run"),
                  text_of(comparison, "base.median_run"));
  return runs +
         (is_tested(comparison) ? "" : "; what is noise, only several runs a side would tell");
}

}  // namespace

Section families_section(const Json& comparison) {
  Section section;
  section.id = "families";
  section.title = "Where the difference went, by family of kernels";
  if (rows_of(comparison, "kernels").empty()) {
    section.missing = "n/a (no kernels were recorded)";
    return section;
  }
  section.tables.push_back(parts_table(rows_of(comparison, "families"), "families", "family",
                                       field_of(comparison, "kernel_time"), "kernel_time.",
                                       "in no kernel's row"));
  section.notes.push_back(median_note(comparison));
  return section;
}

Section buckets_section(const Json& comparison) {
  Section section;
  section.id = "where";
  section.title = "Where the difference went, by bucket";
  ReportTable table;
  table.columns = {{"stage", "stage", Unit::kName},
                   {"GPU", "device", Unit::kText},
                   {"bucket", "bucket", Unit::kText},
                   {"base", "base_ns", Unit::kDuration},
                   {"candidate", "candidate_ns", Unit::kDuration},
                   {"difference", "difference_ns", Unit::kDifference, true}};
  std::size_t place = 0;
  for (const Json& ledger : rows_of(comparison, "ledgers")) {
    const std::string at = fmt::format("ledgers[{}].", place++);
    // The stage `all` is the same as the capture.
    if (text_of(ledger, "stage") == "all") {
      continue;
    }
    std::size_t bucket = 0;
    for (const Json& row : rows_of(ledger, "buckets")) {
      const std::string key = fmt::format("{}buckets[{}].", at, bucket++);
      if (integer_of(row, "difference_ns") != 0) {
        table.rows.push_back(bucket_row(ledger, at, row, key, text_of(row, "bucket")));
      }
    }
    table.rows.push_back(bucket_row(ledger, at, ledger, at, "= window"));
  }
  if (table.rows.empty()) {
    section.missing = "n/a (no GPU activity with times on both sides)";
  } else {
    section.tables.push_back(std::move(table));
  }
  return section;
}

Section moved_section(const Json& comparison, std::size_t top) {
  Section section;
  section.id = "kernels";
  section.title = "Where the difference went, by kernel";
  ReportTable table;
  table.columns = {{"difference", "difference_ns", Unit::kDifference, true},
                   {"by launches", "launches_ns", Unit::kDifference},
                   {"by duration", "duration_ns", Unit::kDifference},
                   {"calls", "calls", Unit::kCount},
                   {"what", "kind", Unit::kText},
                   {"family", "family", Unit::kText},
                   {"stage", "stage", Unit::kName},
                   {"GPU", "device", Unit::kText},
                   {"sure", "p", Unit::kText},
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
  // The note accounts for every nanosecond that the table does not show.
  const std::int64_t whole = integer_of(comparison, "kernel_time.difference_ns");
  section.notes.push_back(
      fmt::format("{} of {} rows, {} of {} ns; all rows sum to {} ns, and {} ns are in no row",
                  table.rows.size(), rows.size(), shown_ns, whole,
                  integer_of(comparison, "kernel_time.rows_ns"),
                  integer_of(comparison, "kernel_time.not_in_rows_ns")));
  section.notes.push_back(median_note(comparison));
  section.tables.push_back(std::move(table));
  if (!is_tested(comparison)) {
    drop_sureness(section.tables.back());
  }
  return section;
}

bool has_operators(const Json& comparison) {
  return !rows_of(comparison, "operators.rows").empty() || rows_of(comparison, "kernels").empty();
}

Section operator_moves_section(const Json& comparison, std::size_t top) {
  Section section;
  section.id = "operators";
  section.title = "Where the difference went, by operator";
  const Json& operators = field_of(comparison, "operators");
  const Json& rows = rows_of(operators, "rows");
  if (rows.empty()) {
    section.missing = fmt::format("n/a ({})", text_of(operators, "missing"));
    return section;
  }
  if (const Json& stages = rows_of(operators, "stages"); stages.size() > 1) {
    section.tables.push_back(parts_table(stages, "operators.stages", "stage", operators,
                                         "operators.", "in no operator"));
    section.tables.back().title = "By stage";
  }
  // Kinds are more informative than operators only if each has several.
  if (const Json& kinds = rows_of(operators, "kinds"); kinds.size() * 2 <= rows.size()) {
    section.tables.push_back(
        parts_table(kinds, "operators.kinds", "kind", operators, "operators.", "in no operator"));
    section.tables.back().title = "By kind";
  }
  section.tables.push_back(operators_table(operators, top));
  if (!is_tested(comparison)) {
    drop_sureness(section.tables.back());
  }
  section.notes.push_back(text_of(operators, "time_of"));
  section.notes.push_back(median_note(comparison));
  return section;
}

// At most kMost runs of each side are listed; a note counts the rest.
Section runs_section(const Json& comparison) {
  constexpr std::size_t kMost = 100;
  Section section;
  section.id = "runs";
  section.title = "Runs";
  ReportTable table;
  table.columns = {
      {"side", "side", Unit::kText}, {"run", "run", Unit::kName}, {"note", "note", Unit::kText}};
  for (const std::string side : {"base", "candidate"}) {
    std::size_t place = 0;
    const Json& median = field_of(comparison, side + ".median_run");
    const Json& runs = rows_of(comparison, side + ".runs");
    for (const Json& run : runs) {
      const bool is_median = run.is_string() && run == median;
      if (place < kMost) {
        table.rows.push_back(
            {{text_value(side),
              {run, Unit::kName, fmt::format("{}.runs[{}]", side, place), nullptr},
              text_value(is_median ? "nearest the middle: taken apart above" : "")},
             "",
             false});
      }
      ++place;
    }
    if (runs.size() > kMost) {
      section.notes.push_back(fmt::format("{} more runs of the {}", runs.size() - kMost, side));
    }
  }
  section.tables.push_back(std::move(table));
  return section;
}

}  // namespace llmprof
