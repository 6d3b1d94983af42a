// SPDX-License-Identifier: Apache-2.0
//
// Parser of the CSV output of ncu, all pages and releases.
//
// Pages differ in columns and releases in spelling, so a column is identified by its heading and a
// page by its columns. With "Metric Name", a row is one metric or one rule (details, or a summary
// by kernel if there is an "Average"). Without it, a row is a launch and every unknown column is a
// metric (raw), with the units in a separate row.
//
// Rows are ragged: metric rows end after the value. ncu shares stdout with the profiled program, so
// anything may come before, between and after tables. A table begins with its headings, and since
// ncu quotes every cell, a line that does not begin with a quote is not ncu's.
#include "ingest/ncu/ncu_csv.h"

#include <algorithm>
#include <array>
#include <utility>

#include <fmt/format.h>

#include "base/csv.h"
#include "base/error.h"
#include "base/file.h"
#include "base/text.h"
#include "ingest/ingest.h"

namespace gpuwhy {
namespace {

using Cells = std::vector<std::string_view>;
using Target = std::string_view NcuRow::*;

constexpr std::pair<std::string_view, Target> kColumns[] = {
    {"ID", &NcuRow::id},
    {"Process ID", &NcuRow::pid},
    {"Process Name", &NcuRow::process},
    {"Kernel Name", &NcuRow::kernel},
    {"Context", &NcuRow::context},
    {"Stream", &NcuRow::stream},
    {"Block Size", &NcuRow::block},
    {"Grid Size", &NcuRow::grid},
    {"Device", &NcuRow::device},
    {"Device Id", &NcuRow::device},
    {"CC", &NcuRow::compute_capability},
    {"Invocations", &NcuRow::invocations},
    {"Section Name", &NcuRow::section},
    {"Body Item Label", &NcuRow::item},
    {"Metric Name", &NcuRow::metric},
    {"Metric Unit", &NcuRow::unit},
    {"Metric Value", &NcuRow::value},
    {"Average", &NcuRow::value},
    {"Rule Name", &NcuRow::rule},
    {"Rule Description", &NcuRow::rule_text},
    {"Estimated Speedup Type", &NcuRow::speedup_type},
    {"Estimated Speedup", &NcuRow::speedup},
};

// Known columns that are neither a launch property nor a metric.
constexpr std::string_view kIgnored[] = {"Host Name", "Kernel Time", "Minimum", "Maximum",
                                         "Rule Type"};

// Positions of the known columns; the others are metrics of a raw page.
struct Headings {
  std::vector<std::pair<std::size_t, Target>> known;
  std::vector<std::pair<std::size_t, std::string>> metrics;
  std::vector<std::string> units;  // by metric; empty before the row of units was read
  std::size_t num_columns = 0;
  bool has_metric_name = false;
  bool is_quoted = false;
};

// Unknown headings become metrics, so that new releases need no change here.
Headings headings_of(const Cells& cells, bool is_quoted) {
  Headings headings;
  headings.num_columns = cells.size();
  headings.is_quoted = is_quoted;
  for (std::size_t i = 0; i < cells.size(); ++i) {
    const auto* at = std::ranges::find_if(
        kColumns, [&](const auto& column) { return column.first == cells[i]; });
    if (at != std::end(kColumns)) {
      headings.known.emplace_back(i, at->second);
      headings.has_metric_name |= at->first == "Metric Name";
    } else if (cells[i].find("Push/Pop_Range") != std::string_view::npos) {
      headings.known.emplace_back(i, &NcuRow::push_pop);
    } else if (cells[i].find("Start/Stop_Range") != std::string_view::npos) {
      headings.known.emplace_back(i, &NcuRow::start_stop);
    } else if (std::find(std::begin(kIgnored), std::end(kIgnored), cells[i]) ==
               std::end(kIgnored)) {
      headings.metrics.emplace_back(i, cells[i]);
    }
  }
  return headings;
}

// A heading line begins with ID or Process ID and names the kernel column.
bool is_counter_heading(std::string_view line) {
  return (line.starts_with("\"ID\",") || line.starts_with("ID,") ||
          line.starts_with("\"Process ID\",") || line.starts_with("Process ID,")) &&
         line.find("Kernel Name") != std::string_view::npos;
}

// A details row is visited once; a raw row once per metric column.
void visit_record(const Cells& cells, Headings& headings, const NcuVisit& visit) {
  NcuRow row;
  for (const auto& [at, target] : headings.known) {
    if (at < cells.size()) {
      row.*target = cells[at];
    }
  }
  if (headings.has_metric_name) {
    if (!row.kernel.empty()) {
      visit(row);
    }
    return;
  }
  if (headings.units.empty() && row.id.empty() && row.kernel.empty()) {
    for (const auto& [at, name] : headings.metrics) {
      headings.units.emplace_back(at < cells.size() ? cells[at] : std::string_view());
    }
    return;
  }
  for (std::size_t i = 0; i < headings.metrics.size() && !row.kernel.empty(); ++i) {
    const auto& [at, name] = headings.metrics[i];
    row.metric = name;
    row.unit = i < headings.units.size() ? std::string_view(headings.units[i]) : "";
    row.value = at < cells.size() ? cells[at] : std::string_view();
    visit(row);
  }
}

// Any text may contain a table: the program's own output may come first.
bool is_ncu_csv(const InputFile& file) {
  return file.head().find('\0') == std::string_view::npos;
}

Counters load_ncu_csv(const InputFile& file) {
  return parse_ncu_output(read_file(file.path(), kGiB));
}

bool is_source_page(std::string_view text) {
  return text.starts_with("\"Kernel Name\",") &&
         text.find("\n\"Address\"") != std::string_view::npos;
}

// The error that ncu printed instead of a table, if any.
std::string error_in(std::string_view text) {
  const std::size_t at = text.find("==ERROR==");
  return at == std::string_view::npos ? "" : printable(text.substr(at, text.find('\n', at) - at));
}

}  // namespace

// A print may hold several tables, with messages of ncu between them. If the heading was quoted, an
// unquoted line is such a message.
std::size_t each_ncu_csv_row(std::string_view text, const NcuVisit& visit) {
  CsvReader reader(text);
  Headings headings;
  std::size_t num_tables = 0;
  while (!reader.is_done()) {
    const std::string_view line = reader.peek_line();
    if (is_counter_heading(line)) {
      headings = headings_of(reader.next(), line.starts_with('"'));
      ++num_tables;
    } else if (num_tables == 0 || line.empty() || line.starts_with("==") ||
               (headings.is_quoted && !line.starts_with('"'))) {
      reader.skip_line();
    } else {
      visit_record(reader.next(), headings, visit);
    }
  }
  return num_tables;
}

Counters parse_ncu_output(std::string_view text) {
  NcuRowCollector collector;
  const NcuVisit collect = [&](const NcuRow& row) { collector.add(row); };
  // CSV first, then the text pages; only if both are empty does the input count as wrong, and the
  // error says what it is instead.
  if (each_ncu_csv_row(text, collect) == 0 && each_ncu_text_row(text, collect) == 0) {
    if (is_source_page(text)) {
      throw Error(
          ErrorKind::kInput,
          "a source page of Nsight Compute: instructions of kernels, no counters of launches",
          "print another page: ncu --import FILE.ncu-rep --csv --page raw");
    }
    if (const std::string said = error_in(text); !said.empty()) {
      throw Error(ErrorKind::kInput, "ncu wrote an error and no table: " + said);
    }
    throw Error(ErrorKind::kInput, "no table of Nsight Compute in it",
                "print one with ncu --import FILE.ncu-rep --csv --page raw");
  }
  return collector.finish();
}

const CounterImporter kNcuCsv = {{.name = "ncu output",
                                  .tool = "Nsight Compute",
                                  .tool_id = "ncu",
                                  .kind = "printed table (CSV or text)",
                                  .made_with = "ncu --import FILE.ncu-rep --csv --page raw"},
                                 is_ncu_csv,
                                 load_ncu_csv};

}  // namespace gpuwhy
