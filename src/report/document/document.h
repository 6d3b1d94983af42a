// SPDX-License-Identifier: Apache-2.0
//
// The contents of a report, independent of the output format.
//
// A document is derived only from metrics.json, so no output can show a figure that the file does
// not have. A value keeps its key. Writers know units and tables; the meaning of a figure is
// defined where the section is made.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "base/json_fwd.h"

namespace gpuwhy {

// How a value is shown.
enum class CellFormat {
  kText,
  kName,          // recorded name of a kernel, range or operator: escaped within its cell
  kWholeName,     // the same, never cut: for what other tools take
  kCount,         // 1234
  kDuration,      // ns, as 1.23 ms
  kMilliseconds,  // ns, as 0.001230: for tables that scripts read
  kFraction,      // 0..1, as 12.3 %
  kSmallRatio,    // the same where the small ones matter: 0.0519 %
  kShares,        // times of the parts of a whole, as "compute 80.0 %, sync 20.0 %"
  kRate,          // 12.3 a second
  kBytes,
  kFlops,
  kTeraflops,       // FLOP/s, as 456.9
  kBytesPerSecond,  // as 2.00 TB/s
  kDifference,      // ns, as +1.23 ms
  kRatio,           // of candidate to base, as +1.20 %
};
const char* format_word(CellFormat unit);
bool is_number(CellFormat unit);

// Times of the parts of a whole, by name.
using TimeParts = std::vector<std::pair<std::string, std::int64_t>>;

// A text, a number or parts; monostate: not known.
using CellValue = std::variant<std::monostate, std::string, std::int64_t, double, TimeParts>;

template <typename T>
CellValue cell_of(const std::optional<T>& value) {
  return value ? CellValue(*value) : CellValue();
}

// A value with its key in metrics.json.
struct ReportValue {
  CellValue value;
  CellFormat unit = CellFormat::kText;
  std::string key;  // its home in metrics.json

  bool is_known() const { return !std::holds_alternative<std::monostate>(value); }
  // The text, or null if it is not one.
  const std::string* text() const { return std::get_if<std::string>(&value); }
  // nullopt if it is not a number.
  std::optional<double> number() const;
};

// Heading and format of a column.
struct ReportColumn {
  std::string title;
  std::string field;  // of a row, as "mfu.wall_fraction"
  CellFormat unit = CellFormat::kText;
  bool has_bar = false;  // in HTML: drawn beside, more to the right and less to the left
  bool is_name = false;  // in HTML on a phone: the head of a card that the row becomes
};

// One row of a table.
struct ReportRow {
  std::vector<ReportValue> cells;
  std::string detail = {};  // more on this row, in words
  bool is_sum = false;      // of the rows above
};

// Rows under columns, in the order in which they are shown.
struct ReportTable {
  std::string title;
  std::vector<ReportColumn> columns;
  std::vector<ReportRow> rows;
};

// A labelled value outside of tables.
struct Fact {
  std::string label;
  ReportValue value;
  std::string reason;  // why the value is not known
};

// A finding in the form that writers need.
struct AdviceCell {
  bool is_blocker = false;                // comes before all else
  std::optional<std::int64_t> saving_ns;  // at most; of others
  std::string id;
  std::string title;  // the same in words; the id where there are none
  std::string sentence;
  std::string next;
  std::string confidence;
  std::string effort;  // of the remedy; empty: nothing is saved, or it is not known
  std::string risk;
  std::vector<std::string> evidence;
};

// One section of a report.
struct Section {
  std::string id;
  std::string title;
  std::string missing;  // why there is nothing to show, and how to fill it; empty: there is
  std::vector<std::string> paragraphs;
  std::vector<Fact> facts;
  std::vector<AdviceCell> advice;
  std::vector<ReportTable> tables;
  std::vector<std::string> notes;
  std::vector<std::string> links;  // files beside this one, by our own names
};

// A whole report.
struct Document {
  std::string title;
  std::vector<Section> sections;
};

// A value as text: "12.3 %", "n/a".
std::string shown(const ReportValue& value);
// The saving of an advice in a writer's words: `blocker`, or `saving` before the time; empty if
// unknown.
std::string worth_text(const AdviceCell& advice, const char* blocker, const char* saving);

std::string markdown_text(const Document& document);
// Sections as HTML that is readable without scripts and styles; `metrics`, where they are given,
// provide the values of a finding's evidence. Values carry their key (data-key) and themselves
// (data-value).
std::string html_text(const Document& document, const Json* metrics = nullptr);
// What a terminal can show. Width 0, as of a pipe: nothing is wrapped or truncated.
struct TerminalForm {
  std::size_t width = 0;
  bool has_color = false;
};
std::string terminal_text(const Document& document, TerminalForm form = {});
// Every value with key, unit and text; sections and tables in order.
std::string document_json(const Document& document);
// The tables, one after another, with full names.
std::string document_csv(const Document& document);

}  // namespace gpuwhy
