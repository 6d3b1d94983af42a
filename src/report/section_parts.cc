// SPDX-License-Identifier: Apache-2.0
//
// Values and tables out of metrics.json. A row's key is made of what tells it from its neighbours,
// so that it means the same row in tomorrow's file.
#include "report/section_parts.h"

#include <algorithm>
#include <map>

#include "base/json_path.h"
#include "base/text.h"

namespace llmprof {
namespace {

const Json kAbsent = nullptr;
const Json kNoRows = Json::array();

// What tells one row of an array from another; arrays that are not here go by place.
const std::map<std::string, std::vector<std::string>>& identities() {
  static const std::map<std::string, std::vector<std::string>> kFields = {
      {"stages", {"stage"}},
      {"baseline", {"stage"}},
      {"overhead", {"stage"}},
      {"ledgers", {"stage", "device"}},
      {"efficiency.stages", {"stage"}},
      {"kernels", {"short_name", "stage", "device"}},
      {"operators.rows", {"name", "stage"}},
      {"operators.layers", {"layer"}},
      {"families", {"family"}},
      {"devices", {"device"}},
  };
  return kFields;
}

std::string row_key(const std::string& array, const Json& row, std::size_t place) {
  const auto known = identities().find(array);
  if (known != identities().end() &&
      std::all_of(known->second.begin(), known->second.end(),
                  [&](const std::string& field) { return row.contains(field); })) {
    return array + "[" + row_choice(row, known->second) + "]";
  }
  return array + "[" + std::to_string(place) + "]";
}

ReportValue cell_of(const Json& row, const std::string& key, const ReportColumn& column) {
  ReportValue cell{field_of(row, column.field), column.unit, key + "." + column.field, nullptr};
  if (column.unit == Unit::kShares) {
    cell.whole = field_of(row, "window_ns");
  }
  return cell;
}

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

ReportValue value_at(const Json& metrics, const std::string& key, Unit unit) {
  return {field_of(metrics, key), unit, key, nullptr};
}

ReportTable table_of(const Json& metrics, const std::string& array,
                     const std::vector<ReportColumn>& columns, std::size_t most,
                     const KeepRow& keep) {
  ReportTable table;
  table.columns = columns;
  std::size_t place = 0;
  for (const Json& row : rows_of(metrics, array)) {
    const std::size_t here = place++;
    if (!row.is_object() || (keep && !keep(row))) {
      continue;
    }
    if (table.rows.size() == most) {
      break;
    }
    const std::string key = row_key(array, row, here);
    ReportRow& made = table.rows.emplace_back();
    for (const ReportColumn& column : columns) {
      made.cells.push_back(cell_of(row, key, column));
    }
  }
  return table;
}

}  // namespace llmprof
