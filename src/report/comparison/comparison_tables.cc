// SPDX-License-Identifier: Apache-2.0
//
// Cells, tables and notes that the sections of a comparison share.
#include "report/comparison/comparison_tables.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "base/text.h"

namespace gpuwhy {

namespace {

// A row that is none of the array: `value` gives what it has in a column, by its field.
template <typename ValueOf>
ReportRow& add_other(const std::string& name, const ValueOf& value, ReportTable& table) {
  ReportRow& row = table.rows.emplace_back();
  for (const ReportColumn& column : table.columns) {
    const bool is_time =
        column.unit == CellFormat::kDifference || column.unit == CellFormat::kDuration;
    const std::optional<ReportValue> known = value(column.field);
    row.cells.push_back(column.is_name ? text_value(name)
                        : known        ? ReportValue{known->value, column.unit, known->key}
                                : ReportValue{"", is_time ? column.unit : CellFormat::kText, ""});
  }
  return row;
}

}  // namespace

void add_rest(const std::string& name, std::int64_t difference_ns, const std::string& key,
              ReportTable& table) {
  add_other(
      name,
      [&](const std::string& field) {
        return field == "difference_ns" ? std::optional(ReportValue{difference_ns, {}, key})
                                        : std::nullopt;
      },
      table);
}

void add_others(std::size_t num_rows, const char* one, const char* several,
                std::int64_t difference_ns, ReportTable& table) {
  if (num_rows > 0) {
    add_rest(fmt::format("{} {}", num_rows, num_rows == 1 ? one : several), difference_ns, "",
             table);
  }
}

void add_sum(const TimeChange& whole, const std::string& key, ReportTable& table) {
  const auto value = [&](const std::string& field) {
    return field == "difference_ns"
               ? std::optional(ReportValue{whole.difference_ns(), {}, key + field})
           : field == "base_ns" ? std::optional(ReportValue{whole.base_ns, {}, key + field})
           : field == "candidate_ns"
               ? std::optional(ReportValue{whole.candidate_ns, {}, key + field})
               : std::nullopt;
  };
  add_other("= all", value, table).is_sum = true;
}

ReportTable parts_table(const std::vector<PartChange>& parts, const std::string& array,
                        const std::string& name, const TotalChange& total,
                        const std::string& total_key, const char* rest) {
  constexpr std::size_t kMost = 12;
  const ChangeColumns<PartChange> columns = {
      {{name, name, CellFormat::kText, false, true}, &PartChange::name},
      {{"difference", "difference_ns", CellFormat::kDifference, true}, &PartChange::difference_ns},
      {{"base", "base_ns", CellFormat::kDuration}, &PartChange::base_ns},
      {{"candidate", "candidate_ns", CellFormat::kDuration}, &PartChange::candidate_ns}};
  ReportTable table = empty_table(columns);
  const std::int64_t shown_ns = add_moved(columns, parts, array, kMost, table);
  const std::int64_t sum_ns = sum_of_differences(parts);
  add_others(parts.size() - table.rows.size(), "other", "others", sum_ns - shown_ns, table);
  if (total.difference_ns() != sum_ns) {
    add_rest(rest, total.difference_ns() - sum_ns, "", table);
  }
  add_sum(total, total_key, table);
  return table;
}

bool is_tested(const Comparison& comparison) {
  return comparison.base.size() > 1 && comparison.candidate.size() > 1;
}

void drop_column(std::string_view field, ReportTable& table) {
  const auto column = std::find_if(table.columns.begin(), table.columns.end(),
                                   [&](const ReportColumn& one) { return one.field == field; });
  const std::ptrdiff_t place = column - table.columns.begin();
  table.columns.erase(column);
  for (ReportRow& row : table.rows) {
    row.cells.erase(row.cells.begin() + place);
  }
}

void add_pace_note(const Comparison& comparison, Section& section) {
  if (comparison.pace) {
    const double ratio = comparison.pace->work_ratio;
    section.notes.push_back(fmt::format(
        "The candidate did {:.1f} % {} work in the same time, so {} time in a row is not {} speed.",
        std::abs(ratio - 1) * 100, ratio < 1 ? "less" : "more", ratio < 1 ? "less" : "more",
        ratio < 1 ? "more" : "less"));
  }
}

std::string median_note(const Comparison& comparison) {
  return fmt::format("Based on one run per side: {} and {}.{}", printable(comparison.base_median),
                     printable(comparison.candidate_median),
                     is_tested(comparison) ? "" : " Noise is unknown with one run per side.");
}

}  // namespace gpuwhy
