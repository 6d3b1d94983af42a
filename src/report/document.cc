// SPDX-License-Identifier: Apache-2.0
//
// Formatting of report values, the same in every output; JSON and CSV output of documents.
#include "report/document.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "base/csv.h"
#include "base/text.h"
#include "base/units.h"

namespace llmprof {
namespace {

constexpr std::size_t kLongestName = 300;

std::string number_text(double number, Unit unit) {
  // Untrusted numbers may be anything; an impossible duration is not shown as one.
  constexpr double kLargest = 9e18;
  if (!(std::abs(number) < kLargest) && unit != Unit::kFlops) {
    return "n/a";
  }
  switch (unit) {
    case Unit::kText:
    case Unit::kName:
    case Unit::kShares:
      return fmt::format("{}", number);
    case Unit::kCount:
      return fmt::format("{:.0f}", number);
    case Unit::kDuration:
      return format_duration_ns(std::llround(number));
    case Unit::kMilliseconds:
      return fmt::format("{:.6f}", number / 1e6);
    case Unit::kFraction:
      return format_fraction(number);
    case Unit::kSmallRatio:
      return std::abs(number) < 0.01 ? fmt::format("{:.3g} %", number * 100)
                                     : format_fraction(number);
    case Unit::kRate:
      return fmt::format("{:.1f}", number);
    case Unit::kBytes:
      return number < 0 ? "n/a" : format_bytes(static_cast<std::uint64_t>(number));
    case Unit::kFlops:
      return fmt::format("{:.3g}", number);
    case Unit::kDifference:
      return (number < 0 ? "-" : "+") + format_duration_ns(std::llround(std::abs(number)));
    case Unit::kRatio:
      return fmt::format("{:+.2f} %", (number - 1) * 100);
  }
  return "";
}

// Parts with any time, largest first.
std::string shares_text(const Json& parts) {
  if (!parts.is_object()) {
    return "n/a";
  }
  double whole = 0;
  std::vector<std::pair<double, std::string>> rows;
  for (const auto& [name, part] : parts.items()) {
    if (part.is_number() && part.get<double>() > 0) {
      rows.emplace_back(part.get<double>(), printable(name));
      whole += part.get<double>();
    }
  }
  std::stable_sort(rows.begin(), rows.end(),
                   [](const auto& a, const auto& b) { return a.first > b.first; });
  std::string text;
  for (const auto& [part, name] : rows) {
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", name,
                        format_fraction(part / std::max(whole, 1.0)));
  }
  return text;
}

Json value_json(const ReportValue& value) {
  return {{"key", value.key},
          {"unit", unit_name(value.unit)},
          {"value", value.value},
          {"text", shown(value)}};
}

Json table_json(const ReportTable& table) {
  Json rows = Json::array();
  for (const ReportRow& row : table.rows) {
    Json cells = Json::array();
    for (const ReportValue& cell : row.cells) {
      cells.push_back(value_json(cell));
    }
    rows.push_back({{"cells", cells}, {"detail", text_or_null(row.detail)}});
  }
  Json columns = Json::array();
  for (const ReportColumn& column : table.columns) {
    columns.push_back(column.title);
  }
  return {{"title", text_or_null(table.title)}, {"columns", columns}, {"rows", rows}};
}

// Every value with its key in metrics.json; a value that is null says why.
Json section_json(const Section& section) {
  Json facts = Json::array();
  for (const Fact& fact : section.facts) {
    Json row = value_json(fact.value);
    row["label"] = fact.label;
    row["reason"] = fact.value.value.is_null() ? text_or_null(fact.reason) : Json(nullptr);
    facts.push_back(row);
  }
  Json advice = Json::array();
  for (const Advice& row : section.advice) {
    advice.push_back({{"id", row.id},
                      {"worth", text_or_null(worth_text(row, "first", "<= "))},
                      {"sentence", row.sentence},
                      {"next", row.next},
                      {"confidence", row.confidence},
                      {"evidence", row.evidence}});
  }
  Json tables = Json::array();
  for (const ReportTable& table : section.tables) {
    tables.push_back(table_json(table));
  }
  return {{"id", section.id},
          {"title", section.title},
          {"missing", text_or_null(section.missing)},
          {"paragraphs", section.paragraphs},
          {"facts", facts},
          {"findings", advice},
          {"tables", tables},
          {"notes", section.notes}};
}

// Integers unchanged: a script needs nanoseconds, not words.
std::string csv_value(const ReportValue& value) {
  if (value.value.is_string()) {
    return csv_cell(value.value.get_ref<const std::string&>());
  }
  return value.value.is_null() ? "" : csv_cell(to_json_line(value.value));
}

}  // namespace

bool is_number(Unit unit) {
  return unit != Unit::kText && unit != Unit::kName && unit != Unit::kShares;
}

// A multi-byte character is dropped as a whole.
std::string cut_name(std::string_view name) {
  if (name.size() <= kLongestName) {
    return std::string(name);
  }
  std::size_t end = kLongestName;
  while (end > 0 && (static_cast<unsigned char>(name[end]) & 0xC0U) == 0x80U) {
    --end;
  }
  return std::string(name.substr(0, end)) + "...";
}

const char* unit_name(Unit unit) {
  switch (unit) {
    case Unit::kText:
    case Unit::kName:
      return "text";
    case Unit::kCount:
      return "1";
    case Unit::kDuration:
    case Unit::kMilliseconds:
    case Unit::kShares:
    case Unit::kDifference:
      return "ns";
    case Unit::kRatio:
    case Unit::kFraction:
    case Unit::kSmallRatio:
      return "fraction";
    case Unit::kRate:
      return "1/s";
    case Unit::kBytes:
      return "bytes";
    case Unit::kFlops:
      return "FLOP";
  }
  return "";
}

std::string shown(const ReportValue& value) {
  if (value.unit == Unit::kShares) {
    return shares_text(value.value);
  }
  if (value.value.is_string()) {
    return printable(value.value.get_ref<const std::string&>());
  }
  if (value.value.is_number_integer() &&
      (value.unit == Unit::kCount || value.unit == Unit::kText)) {
    return to_json_line(value.value);
  }
  return value.value.is_number() ? number_text(value.value.get<double>(), value.unit) : "n/a";
}

std::string worth_text(const Advice& advice, const char* blocker, const char* saving) {
  if (advice.is_blocker) {
    return blocker;
  }
  return advice.saving_ns ? saving + format_duration_ns(*advice.saving_ns) : "";
}

Json document_json(const Document& document) {
  Json json = json_document("report", 1);
  json["title"] = text_or_null(document.title);
  json["sections"] = Json::array();
  for (const Section& section : document.sections) {
    json["sections"].push_back(section_json(section));
  }
  return json;
}

// One table after another, separated by an empty line, with field names as headings.
std::string document_csv(const Document& document) {
  std::string text;
  for (const Section& section : document.sections) {
    for (const ReportTable& table : section.tables) {
      text += text.empty() ? "" : "\n";
      for (std::size_t i = 0; i < table.columns.size(); ++i) {
        text += (i == 0 ? "" : ",") + csv_cell(table.columns[i].field);
      }
      text += "\n";
      for (const ReportRow& row : table.rows) {
        for (std::size_t i = 0; i < row.cells.size(); ++i) {
          text += (i == 0 ? "" : ",") + csv_value(row.cells[i]);
        }
        text += "\n";
      }
    }
  }
  return text;
}

}  // namespace llmprof
