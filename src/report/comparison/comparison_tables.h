// SPDX-License-Identifier: Apache-2.0
//
// Tables and notes that the sections of a comparison share.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "compare/compare.h"
#include "report/comparison/comparison_parts.h"
#include "report/document/document.h"

namespace gpuwhy {

// A column of a table of changes: its head, whose field is the value's key in a row (empty: it has
// none), and its value.
template <typename Row>
struct ChangeColumn {
  ReportColumn head;
  std::function<CellValue(const Row&)> value;
};
template <typename Row>
using ChangeColumns = std::vector<ChangeColumn<Row>>;

template <typename Row>
ReportTable empty_table(const ChangeColumns<Row>& columns, std::string title = "") {
  ReportTable table;
  table.title = std::move(title);
  for (const ChangeColumn<Row>& column : columns) {
    table.columns.push_back(column.head);
  }
  return table;
}

// Adds a row; its values are below `key`.
template <typename Row>
ReportRow& add_row(const ChangeColumns<Row>& columns, const Row& row, const std::string& key,
                   ReportTable& table) {
  ReportRow& made = table.rows.emplace_back();
  for (const ChangeColumn<Row>& column : columns) {
    made.cells.push_back({column.value(row), column.head.unit,
                          column.head.field.empty() ? "" : key + column.head.field});
  }
  return made;
}

// Whether a kernel or operator moved beyond noise, in words.
template <typename Row>
std::string sureness(const Row& row) {
  return !row.p ? "n/a"
                : fmt::format("{} (p {:.2g}, adjusted {:.2g})",
                              row.is_significant ? "beyond noise" : "within noise", *row.p,
                              row.adjusted_p.value_or(0));
}

template <typename Row>
std::string calls_of(const Row& row) {
  return fmt::format("{} -> {}", row.base.calls, row.candidate.calls);
}

template <typename Row>
std::int64_t sum_of_differences(const std::vector<Row>& rows) {
  std::int64_t sum_ns = 0;
  for (const Row& row : rows) {
    sum_ns += row.difference_ns();
  }
  return sum_ns;
}

// Adds the first `top` rows that differ, of the array of this key; returns the sum of their
// differences.
template <typename Row>
std::int64_t add_moved(const ChangeColumns<Row>& columns, const std::vector<Row>& rows,
                       const std::string& array, std::size_t top, ReportTable& table) {
  std::int64_t shown_ns = 0;
  for (std::size_t i = 0; i < rows.size() && table.rows.size() < top; ++i) {
    if (rows[i].difference_ns() != 0) {
      add_row(columns, rows[i], fmt::format("{}[{}].", array, i), table);
      shown_ns += rows[i].difference_ns();
    }
  }
  return shown_ns;
}

// Adds a row that is not one of the array: its name and its difference, whose key may be empty.
void add_rest(const std::string& name, std::int64_t difference_ns, const std::string& key,
              ReportTable& table);
// The same of `rows` that are not shown; nothing if all are.
void add_others(std::size_t num_rows, const char* one, const char* several,
                std::int64_t difference_ns, ReportTable& table);
// Adds the sum of all rows, whose values are below `key`.
void add_sum(const TimeChange& whole, const std::string& key, ReportTable& table);

// Names with a base, a candidate and a difference each; the largest, the others, the rest, the sum.
// `name` is the field that holds a row's name, `rest` what is said of time in no row.
ReportTable parts_table(const std::vector<PartChange>& parts, const std::string& array,
                        const std::string& name, const TotalChange& total,
                        const std::string& total_key, const char* rest);

// Several runs per side: rows are tested against noise.
bool is_tested(const Comparison& comparison);
void drop_column(std::string_view field, ReportTable& table);
// Rows are of all the work in a recording: where that is less, so is their time.
void add_pace_note(const Comparison& comparison, Section& section);
// The runs that the rows are of.
std::string median_note(const Comparison& comparison);

}  // namespace gpuwhy
