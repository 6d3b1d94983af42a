// SPDX-License-Identifier: Apache-2.0
//
// JSON and CSV output of documents.
#include "base/csv.h"
#include "base/json.h"
#include "report/document/document.h"

namespace gpuwhy {
namespace {

Json cell_json(const CellValue& value) {
  return std::visit(
      []<typename T>(const T& content) -> Json {
        if constexpr (std::is_same_v<T, std::monostate>) {
          return nullptr;
        } else if constexpr (std::is_same_v<T, TimeParts>) {
          Json json = Json::object();
          for (const auto& [name, part_ns] : content) {
            json.emplace(name, part_ns);
          }
          return json;
        } else {
          return content;
        }
      },
      value);
}

Json value_json(const ReportValue& value) {
  return {{"key", value.key},
          {"unit", format_word(value.unit)},
          {"value", cell_json(value.value)},
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
    row["reason"] = fact.value.is_known() ? Json(nullptr) : text_or_null(fact.reason);
    facts.push_back(row);
  }
  Json advice = Json::array();
  for (const AdviceCell& row : section.advice) {
    advice.push_back({{"id", row.id},
                      {"worth", text_or_null(worth_text(row, "first", "<= "))},
                      {"sentence", row.sentence},
                      {"next", row.next},
                      {"confidence", row.confidence},
                      {"effort", text_or_null(row.effort)},
                      {"risk", text_or_null(row.risk)},
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
  if (value.text() != nullptr) {
    return csv_cell(*value.text());
  }
  return value.is_known() ? csv_cell(to_json_line(cell_json(value.value))) : "";
}

}  // namespace

std::string document_json(const Document& document) {
  Json json = json_document("report", 1);
  json["title"] = text_or_null(document.title);
  json["sections"] = Json::array();
  for (const Section& section : document.sections) {
    json["sections"].push_back(section_json(section));
  }
  return to_json_text(json);
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

}  // namespace gpuwhy
