// SPDX-License-Identifier: Apache-2.0
//
// Cells, tables and notes that the sections of a comparison share.
#include "report/comparison_tables.h"

#include <algorithm>

#include "base/text.h"

namespace gpuwhy {

ReportValue difference_of(std::int64_t difference_ns, std::string key) {
  return {difference_ns, CellFormat::kDifference, std::move(key)};
}

ReportValue duration_of(std::int64_t duration_ns, std::string key) {
  return {duration_ns, CellFormat::kDuration, std::move(key)};
}

ReportValue no_value(CellFormat unit) {
  return {"", unit, ""};
}

ReportTable parts_table(const std::vector<PartChange>& parts, const std::string& array,
                        const std::string& name, const TotalChange& total,
                        const std::string& total_key, const char* rest) {
  constexpr std::size_t kMost = 12;
  ReportTable table;
  table.columns = {{name, name, CellFormat::kText, false, true},
                   {"difference", "difference_ns", CellFormat::kDifference, true},
                   {"base", "base_ns", CellFormat::kDuration},
                   {"candidate", "candidate_ns", CellFormat::kDuration}};
  std::int64_t others_ns = 0;
  std::size_t others = 0;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const PartChange& part = parts[i];
    const std::string key = fmt::format("{}[{}].", array, i);
    if (part.difference_ns() != 0 && table.rows.size() < kMost) {
      table.rows.push_back({{{part.name, CellFormat::kText, key + name},
                             difference_of(part.difference_ns(), key + "difference_ns"),
                             duration_of(part.base_ns, key + "base_ns"),
                             duration_of(part.candidate_ns, key + "candidate_ns")},
                            "",
                            false});
    } else {
      others_ns += part.difference_ns();
      ++others;
    }
  }
  const auto add = [&](const std::string& label, std::int64_t difference_ns) {
    table.rows.push_back({{text_value(label), difference_of(difference_ns),
                           no_value(CellFormat::kDuration), no_value(CellFormat::kDuration)},
                          "",
                          false});
  };
  if (others > 0) {
    add(fmt::format("{} {}", others, others == 1 ? "other" : "others"), others_ns);
  }
  if (const std::int64_t rest_ns = total.difference_ns() - sum_of_differences(parts);
      rest_ns != 0) {
    add(rest, rest_ns);
  }
  table.rows.push_back(
      {{text_value("= all"), difference_of(total.difference_ns(), total_key + "difference_ns"),
        duration_of(total.base_ns, total_key + "base_ns"),
        duration_of(total.candidate_ns, total_key + "candidate_ns")},
       "",
       true});
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

void drop_sureness(ReportTable& table) {
  drop_column("p", table);
}

void add_pace_note(const Comparison& comparison, Section& section) {
  if (comparison.pace && comparison.pace->work_ratio < 1) {
    section.notes.push_back(fmt::format(
        "The candidate did {:.1f} % less work in the same time, so less time in a row is "
        "not more speed.",
        (1 - comparison.pace->work_ratio) * 100));
  } else if (comparison.pace) {
    section.notes.push_back(fmt::format(
        "The candidate did {:.1f} % more work in the same time, so more time in a row is "
        "not less speed.",
        (comparison.pace->work_ratio - 1) * 100));
  }
}

std::string median_note(const Comparison& comparison) {
  return fmt::format("Based on one run per side: {} and {}.{}", printable(comparison.base_median),
                     printable(comparison.candidate_median),
                     is_tested(comparison) ? "" : " Noise is unknown with one run per side.");
}

}  // namespace gpuwhy
