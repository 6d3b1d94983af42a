// SPDX-License-Identifier: Apache-2.0
//
// Cells, tables and notes that the sections of a comparison share.
#pragma once

#include <string>
#include <vector>

#include <fmt/format.h>

#include "compare/compare.h"
#include "report/comparison_parts.h"
#include "report/document.h"

namespace gpuwhy {

ReportValue difference_of(std::int64_t difference_ns, std::string key = "");
ReportValue duration_of(std::int64_t duration_ns, std::string key);
ReportValue no_value(CellFormat unit);

// Whether a kernel or operator moved beyond noise, in words.
template <typename Row>
std::string sureness(const Row& row) {
  if (!row.p) {
    return "n/a";
  }
  return fmt::format("{} (p {:.2g}, adjusted {:.2g})",
                     row.is_significant ? "beyond noise" : "within noise", *row.p,
                     row.adjusted_p.value_or(0));
}

template <typename Row>
ReportValue calls_of(const Row& row) {
  return {fmt::format("{} -> {}", row.base.calls, row.candidate.calls), CellFormat::kCount, ""};
}

template <typename Row>
std::int64_t sum_of_differences(const std::vector<Row>& rows) {
  std::int64_t sum_ns = 0;
  for (const Row& row : rows) {
    sum_ns += row.difference_ns();
  }
  return sum_ns;
}

// Names with a base, a candidate and a difference each; the largest, the others, the rest, the sum.
// `name` is the field that holds a row's name, `rest` what is said of time in no row.
ReportTable parts_table(const std::vector<PartChange>& parts, const std::string& array,
                        const std::string& name, const TotalChange& total,
                        const std::string& total_key, const char* rest);

// Adds the first `top` rows that differ; returns the sum of their differences.
template <typename Row>
std::int64_t add_moved(const std::vector<Row>& rows, std::size_t top,
                       ReportRow (*row_of)(const Row&, std::size_t), ReportTable& table) {
  std::int64_t shown_ns = 0;
  for (std::size_t i = 0; i < rows.size() && table.rows.size() < top; ++i) {
    if (rows[i].difference_ns() != 0) {
      table.rows.push_back(row_of(rows[i], i));
      shown_ns += rows[i].difference_ns();
    }
  }
  return shown_ns;
}

// Several runs per side: rows are tested against noise.
bool is_tested(const Comparison& comparison);
void drop_column(std::string_view field, ReportTable& table);
// Removes the column if no row was tested.
void drop_sureness(ReportTable& table);
// Rows are of all the work in a recording: where that is less, so is their time.
void add_pace_note(const Comparison& comparison, Section& section);
// The runs that the rows are of.
std::string median_note(const Comparison& comparison);

}  // namespace gpuwhy
