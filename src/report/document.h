// SPDX-License-Identifier: Apache-2.0
//
// What a report says, before it is markdown, a terminal's text or anything else.
//
// A document is made of metrics.json and of nothing else, so no output can show a figure that file
// does not hold. A value keeps the key it came from. Writers know units and tables; what a figure
// means is known where the section is made.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"

namespace llmprof {

// How a value is shown.
enum class Unit {
  kText,
  kName,          // of a stranger's kernel, range or operator: never leaves its cell
  kCount,         // 1234
  kDuration,      // ns, as 1.23 ms
  kMilliseconds,  // ns, as 0.001230: for tables that scripts read
  kFraction,      // 0..1, as 12.3 %
  kSmallRatio,    // the same where the small ones matter: 0.0519 %
  kShares,        // an object of times, as "compute 80.0 %, sync 20.0 %", of `whole`
  kRate,          // 12.3 a second
  kBytes,
  kFlops,
  kDifference,  // ns, as +1.23 ms
  kRatio,       // of candidate to base, as +1.20 %
};
const char* unit_name(Unit unit);
bool is_number(Unit unit);

// A name as tables show it: kernel names of 4 KB exist, and what tells them apart stands in the
// first 300 bytes. No character is cut in half.
std::string cut_name(std::string_view name);

struct ReportValue {
  Json value;  // null: not known
  Unit unit = Unit::kText;
  std::string key;  // its home in metrics.json
  Json whole;       // of kShares
};

struct ReportColumn {
  std::string title;
  std::string field;  // of a row, as "mfu.wall_fraction"
  Unit unit = Unit::kText;
  bool has_bar = false;  // in HTML: drawn beside, more to the right and less to the left
};

struct ReportRow {
  std::vector<ReportValue> cells;
  std::string detail;   // more on this row, in words
  bool is_sum = false;  // of the rows above
};

struct ReportTable {
  std::string title;
  std::vector<ReportColumn> columns;
  std::vector<ReportRow> rows;
};

struct Fact {
  std::string label;
  ReportValue value;
  std::string reason;  // why the value is not known
};

struct Advice {
  bool is_blocker = false;                // comes before all else
  std::optional<std::int64_t> saving_ns;  // at most; of others
  std::string id;
  std::string sentence;
  std::string next;
  std::string confidence;
  std::vector<std::string> evidence;
};

struct Section {
  std::string id;
  std::string title;
  std::string missing;  // why there is nothing to show, and how to fill it; empty: there is
  std::vector<std::string> paragraphs;
  std::vector<Fact> facts;
  std::vector<Advice> advice;
  std::vector<ReportTable> tables;
  std::vector<std::string> notes;
  std::vector<std::string> links;  // files beside this one, by our own names
};

struct Document {
  std::string title;
  std::vector<Section> sections;
};

// A value in words: "12.3 %", "n/a".
std::string shown(const ReportValue& value);
// What an advice saves, with the words of a writer: `blocker`, or `saving` before the time; empty
// where nothing is known.
std::string worth_text(const Advice& advice, const char* blocker, const char* saving);

// `width` is that of the terminal, 0 where nothing may be cut.
std::string markdown_text(const Document& document);
// Sections as HTML that reads well without scripts and styles; `metrics` tells what the evidence of
// a finding amounts to. Values carry their key (data-key) and themselves (data-value).
std::string html_text(const Document& document, const Json& metrics);
std::string terminal_text(const Document& document, std::size_t width);
// Every value with key, unit and text; sections and tables in order.
Json document_json(const Document& document);
// The tables, one after another, names whole.
std::string document_csv(const Document& document);

}  // namespace llmprof
