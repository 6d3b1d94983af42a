// SPDX-License-Identifier: Apache-2.0
//
// Report values and tables from members of Metrics.
//
// A value knows its key in metrics.json. The key follows from the members that lead to the value,
// through their descriptions, and is never written a second time.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "base/json_path.h"
#include "report/document.h"
#include "report/metric_fields.h"

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

// A field with its key.
struct NamedField {
  std::string key;
  Field field;
};

// The key and description of a member. An unknown member yields an empty key.
template <typename T, typename Member>
NamedField name_of(Member member) {
  NamedField named;
  describe(static_cast<const T*>(nullptr), [&](const char* key, auto other, const Field& field) {
    if constexpr (std::is_same_v<decltype(other), Member>) {
      if (other == member) {
        named = {key, field};
      }
    }
  });
  return named;
}

// The object behind a member; null where an optional one is absent.
template <typename T>
const T* present(const T& value) {
  return &value;
}
template <typename T>
const T* present(const std::optional<T>& value) {
  return value ? &*value : nullptr;
}

template <typename T, typename Member>
using Inner = std::remove_cvref_t<decltype(*present(std::declval<const ValueOf<T, Member>&>()))>;

// "efficiency.stages" of the members that lead there.
template <typename T, typename Member, typename... Rest>
std::string path_of(Member member, Rest... rest) {
  std::string key = name_of<T>(member).key;
  if constexpr (sizeof...(rest) == 0) {
    return key;
  } else {
    return key + "." + path_of<Inner<T, Member>>(rest...);
  }
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
auto rows_at(const Metrics& metrics, Members... members) {
  const auto* list = list_at(&metrics, members...);
  using Row = typename std::remove_cvref_t<decltype(*list)>::value_type;
  return MetricRows<Row>{path_of<Metrics>(members...), list};
}

// "stages[stage=decode]": identifies a row by what distinguishes it from its neighbours, so that it
// means the same row in another file; by index if nothing does.
template <typename Row>
std::string row_path(const std::string& array, const Row& row, std::size_t place) {
  std::map<int, std::string> names;
  describe(&row, [&](const char* key, auto member, const Field& field) {
    if constexpr (kIsText<ValueOf<Row, decltype(member)>>) {
      if (field.name_place > 0) {
        names[field.name_place] =
            std::string(key) + "=" + path_value(text_of_member(std::invoke(member, row)));
      }
    }
  });
  std::string choice;
  for (const auto& [name_place, name] : names) {
    choice += (choice.empty() ? "" : ",") + name;
  }
  return array + "[" + (choice.empty() ? std::to_string(place) : choice) + "]";
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
