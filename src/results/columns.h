// SPDX-License-Identifier: Apache-2.0
//
// Tables by column: what all writers of rows take, Arrow, Parquet, CSV, JSON and a terminal.
//
// A column is asked row by row, so that a table of millions of events is never copied. The columns
// of declared rows follow from their describe(), as their JSON does.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "results/field.h"

namespace gpuwhy {

enum class ColumnType : std::uint8_t {
  kNumber,
  kIndex,  // a number below 2^31
  kId,     // below 2^32
  kReal,
  kFlag,
  kText,
  kName,    // a text that many rows have
  kList,    // the only child has the items of all rows
  kStruct,  // the children are its fields
};

// A column of a table.
struct ResultColumn {
  std::string name;
  ColumnType type = ColumnType::kNumber;
  bool is_optional = false;
  // nullopt: the row has none. Of a flag 0 or 1, of a real its bits, of a text its key; lists and
  // structs only say whether there is one.
  std::function<std::optional<std::int64_t>(std::size_t row)> value = {};
  // The text of a key. It stays valid as long as the rows.
  std::function<std::string_view(std::int64_t key)> text = {};
  std::string_view unit = {};  // of MetricInfo
  std::vector<ResultColumn> children = {};
  std::vector<std::int32_t> offsets = {};  // of a list: where the items of each row begin; the end
  // All numbers as their type has them in memory, where they are there already.
  const void* numbers = nullptr;
  std::shared_ptr<const void> owner = nullptr;  // of what the column refers to
};

// A table, and how many rows it has.
struct ColumnTable {
  std::string name;
  std::size_t num_rows = 0;
  std::vector<ResultColumn> columns;
  std::shared_ptr<const void> owner = nullptr;  // of the rows
};

// `text` with U+FFFD for each byte that is not UTF-8: what readers of tables take.
std::string valid_text(std::string_view text);
// A text as JSON writes it.
std::string json_string(std::string_view text);

// Those of these names, in this order.
std::vector<ResultColumn> pick(std::vector<ResultColumn> columns,
                               std::initializer_list<std::string_view> names);
// Without lists; a field of a struct has the name of both: "mfu.wall_fraction".
std::vector<ResultColumn> without_lists(std::vector<ResultColumn> columns);
// An empty text becomes a text that is not there.
ResultColumn without_empty(ResultColumn column);

// CSV by lines: names of the columns, which have no lists, then each of these rows.
void write_csv(const std::vector<ResultColumn>& columns, const std::vector<std::size_t>& rows,
               const std::function<void(const std::string&)>& put);
// A list of objects as to_json_text() has it, `indent` blanks deep.
std::string json_of_columns(const std::vector<ResultColumn>& columns,
                            const std::vector<std::size_t>& rows, std::size_t indent);

// A bin of a histogram and what is in it.
template <typename F>
void describe(const NumberPair*, F&& f) {
  f("bin", &NumberPair::first, plain("the bin"));
  f("count", &NumberPair::second, plain("what is in it"));
}

// What result_columns() is made of.
namespace columns {

// The values of a column under way: a null pointer is a row without one.
template <typename T>
using Values = std::vector<const T*>;

template <typename T>
void add_fields(const Values<T>& rows, const ResultColumn& around, unsigned forms,
                std::vector<ResultColumn>& into);

// The text of each value by its key; one that is made of others is kept.
template <typename T>
std::function<std::string_view(std::int64_t)> texts_of(const Values<T>& values) {
  if constexpr (std::is_same_v<T, std::string_view>) {
    return [values](std::int64_t key) { return *values[static_cast<std::size_t>(key)]; };
  } else if constexpr (std::is_reference_v<decltype(text_of_member(*values[0]))>) {
    return [values](std::int64_t key) {
      return std::string_view(text_of_member(*values[static_cast<std::size_t>(key)]));
    };
  } else {
    const auto texts = std::make_shared<std::vector<std::string>>();
    for (const T* value : values) {
      texts->push_back(value == nullptr ? std::string() : text_of_member(*value));
    }
    return [texts](std::int64_t key) {
      return std::string_view((*texts)[static_cast<std::size_t>(key)]);
    };
  }
}

// Fills in what follows from the type of the values.
template <typename T>
void fill(const Values<T>& values, const Field& field, ResultColumn& column) {
  const auto set_value = [&](ColumnType type, auto&& number) {
    column.type = type;
    column.value = [values, number](std::size_t row) {
      return values[row] == nullptr ? std::nullopt
                                    : std::optional<std::int64_t>(number(row, *values[row]));
    };
  };
  if constexpr (kIsOptional<T>) {
    Values<typename T::value_type> inner(values.size());
    std::ranges::transform(values, inner.begin(), [](const T* value) {
      return value == nullptr || !*value ? nullptr : &**value;
    });
    column.is_optional = true;
    fill<typename T::value_type>(inner, field, column);
  } else if constexpr (kIsText<T> || std::is_same_v<T, std::string_view>) {
    set_value(ColumnType::kText, [](std::size_t row, const T&) { return row; });
    column.text = texts_of(values);
    column = field.is_null_if_empty ? without_empty(std::move(column)) : std::move(column);
  } else if constexpr (std::is_same_v<T, double>) {
    set_value(ColumnType::kReal,
              [](std::size_t, double value) { return std::bit_cast<std::int64_t>(value); });
  } else if constexpr (std::is_arithmetic_v<T>) {
    set_value(std::is_same_v<T, bool> ? ColumnType::kFlag : ColumnType::kNumber,
              [](std::size_t, T value) { return value; });
  } else if constexpr (kIsList<T>) {
    set_value(ColumnType::kList, [](std::size_t, const T&) { return 1; });
    Values<typename T::value_type> items;
    for (const T* list : values) {
      column.offsets.push_back(static_cast<std::int32_t>(items.size()));
      for (std::size_t i = 0; list != nullptr && i < list->size(); ++i) {
        items.push_back(&(*list)[i]);
      }
    }
    column.offsets.push_back(static_cast<std::int32_t>(items.size()));
    fill(items, {}, column.children.emplace_back(ResultColumn{"item"}));
  } else {
    set_value(ColumnType::kStruct, [](std::size_t, const T&) { return 1; });
    add_fields(values, column, 0, column.children);
  }
}

// A column for each field that has one of the forms; 0: for each. The buckets of a ledger are
// a column each.
template <typename T>
void add_fields(const Values<T>& rows, const ResultColumn& around, unsigned forms,
                std::vector<ResultColumn>& into) {
  const auto add = [&](std::string_view key, auto member, const Field& field) {
    using Value = ValueOf<T, decltype(member)>;
    if (forms != 0 && (field.forms & forms) == 0) {
      return;
    }
    Values<Value> values;
    values.reserve(rows.size());
    const auto results = std::make_shared<std::deque<Value>>();  // of member functions
    for (const T* row : rows) {
      if (row == nullptr) {
        values.push_back(nullptr);
      } else if constexpr (std::is_member_object_pointer_v<decltype(member)>) {
        values.push_back(&(row->*member));
      } else {
        values.push_back(&results->emplace_back(std::invoke(member, *row)));
      }
    }
    ResultColumn column{std::string(forms == 0 || field.form_name.empty() ? key : field.form_name)};
    column.unit = field.info.unit.empty() ? around.unit : field.info.unit;
    column.is_optional = around.is_optional;
    column.owner = results;
    if constexpr (std::is_same_v<Value, BucketTimes>) {
      for (std::size_t bucket = 0; bucket < kNumBuckets; ++bucket) {
        Values<std::int64_t> times(values.size());
        std::ranges::transform(values, times.begin(), [&](const BucketTimes* all) {
          return all == nullptr ? nullptr : &(*all)[bucket];
        });
        column.name = std::string(kBucketNames[bucket]) + "_ns";
        fill(times, field, column);
        into.push_back(column);
      }
    } else {
      fill(values, field, column);
      into.push_back(std::move(column));
    }
  };
  describe(static_cast<const T*>(nullptr), add);
}

}  // namespace columns

// A column for each field of the rows, which must outlive them; with forms, for those that have
// one of these.
template <typename Row>
std::vector<ResultColumn> result_columns(const std::vector<Row>& rows, unsigned forms = 0) {
  columns::Values<Row> values(rows.size());
  std::ranges::transform(rows, values.begin(), [](const Row& row) { return &row; });
  std::vector<ResultColumn> made;
  columns::add_fields(values, {}, forms, made);
  return made;
}

}  // namespace gpuwhy
