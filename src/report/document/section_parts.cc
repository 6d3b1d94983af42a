// SPDX-License-Identifier: Apache-2.0
//
// Values and tables out of a JSON document.
#include "report/document/section_parts.h"

#include "base/json.h"
#include "base/text.h"

namespace gpuwhy {
namespace {

const Json kAbsent = nullptr;
const Json kNoRows = Json::array();

}  // namespace

const Json& field_of(const Json& value, std::string_view path) {
  const Json* at = &value;
  for (const std::string_view name : split(path, '.')) {
    const auto field = at->is_object() ? at->find(name) : at->end();
    if (field == at->end()) {
      return kAbsent;
    }
    at = &*field;
  }
  return *at;
}

const Json& rows_of(const Json& metrics, std::string_view path) {
  const Json& rows = field_of(metrics, path);
  return rows.is_array() ? rows : kNoRows;
}

std::string text_of(const Json& value, std::string_view path) {
  const Json& field = field_of(value, path);
  return field.is_string() ? printable(field.get_ref<const std::string&>()) : "";
}

std::int64_t integer_of(const Json& value, std::string_view path) {
  const Json& field = field_of(value, path);
  return field.is_number_integer() ? field.get<std::int64_t>() : 0;
}

double number_of(const Json& value, std::string_view path) {
  const Json& field = field_of(value, path);
  return field.is_number() ? field.get<double>() : 0;
}

CellValue cell_of(const Json& value) {
  if (value.is_string()) {
    return value.get_ref<const std::string&>();
  }
  // What does not fit into 64 bits with a sign is neither a time nor a count.
  if (const auto number = json_integer(value)) {
    return *number;
  }
  return value.is_number() ? CellValue(value.get<double>()) : CellValue();
}

ReportValue value_at(const Json& metrics, const std::string& key, CellFormat unit) {
  return {cell_of(field_of(metrics, key)), unit, key};
}

ReportTable table_of(const Json& document, const std::string& array,
                     const std::vector<ReportColumn>& columns, std::size_t most) {
  ReportTable table;
  table.columns = columns;
  const Json& rows = rows_of(document, array);
  for (std::size_t i = 0; i < rows.size() && table.rows.size() < most; ++i) {
    if (rows[i].is_object()) {
      ReportRow& made = table.rows.emplace_back();
      for (const ReportColumn& column : columns) {
        made.cells.push_back({cell_of(field_of(rows[i], column.field)), column.unit,
                              array + "[" + std::to_string(i) + "]." + column.field});
      }
    }
  }
  return table;
}

}  // namespace gpuwhy
