// SPDX-License-Identifier: Apache-2.0
//
// Report values and tables from members of Results.
//
// A value knows its key in metrics.json. The key follows from the members that lead to the value,
// through their descriptions, and is never written a second time.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "report/document/document.h"
#include "results/field_path.h"
#include "results/results.h"

namespace gpuwhy {

// A member's value as a cell.
CellValue member_cell(const std::string& value, const Field& field);
inline CellValue member_cell(const RowName& value, const Field& field) {
  return member_cell(value.text(), field);
}
CellValue member_cell(const BucketTimes& value, const Field& field);
template <typename T>
CellValue member_cell(const T& value, const Field& field) {
  if (field.is_null_if_empty && value == T()) {
    return {};
  }
  if constexpr (Worded<T>) {
    return text_of_member(value);
  } else if constexpr (std::is_enum_v<T>) {
    return std::string(id_of(value));
  } else {
    return value;
  }
}
template <typename T>
CellValue member_cell(const std::optional<T>& value, const Field& /*field*/) {
  return cell_of(value);
}

// The value the members lead to; not known if an object on the way is absent.
template <typename T, typename Member, typename... Rest>
CellValue cell_at(const T* object, Member member, Rest... rest) {
  if (object == nullptr) {
    return {};
  }
  if constexpr (sizeof...(rest) == 0) {
    return member_cell(std::invoke(member, *object), name_of<T>(member).field);
  } else {
    return cell_at(present(object->*member), rest...);
  }
}

// A value of a file, as metrics.json, with its key.
template <typename File, typename... Members>
ReportValue value_at(const File& file, CellFormat unit, Members... members) {
  return {cell_at(&file, members...), unit, path_of<File>(members...)};
}

// A column: title, format, and the members that lead to the value from a row.
template <typename Row>
struct MemberColumn {
  template <typename... Members>
  MemberColumn(const char* title, CellFormat unit, Members... members)
      : head{title, path_of<Row>(members...), unit},
        value([members...](const Row& row) { return cell_at(&row, members...); }) {}

  ReportColumn head;
  std::function<CellValue(const Row&)> value;
};

// An array of metrics.json; `rows` is null if it is absent.
template <typename Row>
struct MetricRows {
  std::string path;
  const std::vector<Row>* rows = nullptr;
};

// The list that the members lead to; null if an optional one on the way is absent.
template <typename T, typename Member, typename... Rest>
auto list_at(const T* object, Member member, Rest... rest) {
  if constexpr (sizeof...(rest) == 0) {
    return object == nullptr ? nullptr : present(object->*member);
  } else {
    return list_at(object == nullptr ? nullptr : present(object->*member), rest...);
  }
}

// The rows of a list of metrics.json, with their path.
template <typename... Members>
auto rows_at(const Results& metrics, Members... members) {
  const auto* list = list_at(&metrics, members...);
  using Row = typename std::remove_cvref_t<decltype(*list)>::value_type;
  return MetricRows<Row>{path_of<Results>(members...), list};
}

// One row for each that `keep` accepts, at most `most`.
template <typename Row>
ReportTable table_of(const MetricRows<Row>& array,
                     const std::vector<MemberColumn<std::type_identity_t<Row>>>& columns,
                     std::size_t most = SIZE_MAX,
                     const std::function<bool(const std::type_identity_t<Row>&)>& keep = {}) {
  ReportTable table;
  for (const MemberColumn<Row>& column : columns) {
    table.columns.push_back(column.head);
  }
  const std::size_t count = array.rows == nullptr ? 0 : array.rows->size();
  for (std::size_t i = 0; i < count && table.rows.size() < most; ++i) {
    const Row& row = (*array.rows)[i];
    if (keep && !keep(row)) {
      continue;
    }
    const std::string path = row_path(array.path, row, i);
    ReportRow& made = table.rows.emplace_back();
    for (const MemberColumn<Row>& column : columns) {
      made.cells.push_back({column.value(row), column.head.unit, path + "." + column.head.field});
    }
  }
  return table;
}

}  // namespace gpuwhy
