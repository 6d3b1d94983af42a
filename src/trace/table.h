// SPDX-License-Identifier: Apache-2.0
//
// Loops over the columns of a table: a struct of nothing but columns, as those of trace/trace.h.
//
// What sizes, filters or copies a table is written once, here or by its caller, and a new column is
// one line in its struct. C++20 cannot list the members of a struct, but can take it apart when
// their number is known; columns of one kind have one size, so the size of the struct tells it. A
// table with another number of columns than those below, or with a member that is not a column,
// does not compile.
#pragma once

#include <cstddef>
#include <tuple>
#include <utility>

namespace gpuwhy {

// References to all columns of a table, as a tuple.
template <typename Table>
auto columns_of(Table& table) {
  constexpr std::size_t kNumColumns = sizeof(Table) / sizeof(table.start_ns);
  if constexpr (kNumColumns == 4) {
    auto& [a, b, c, d] = table;
    return std::tie(a, b, c, d);
  } else if constexpr (kNumColumns == 5) {
    auto& [a, b, c, d, e] = table;
    return std::tie(a, b, c, d, e);
  } else if constexpr (kNumColumns == 6) {
    auto& [a, b, c, d, e, f] = table;
    return std::tie(a, b, c, d, e, f);
  } else if constexpr (kNumColumns == 7) {
    auto& [a, b, c, d, e, f, g] = table;
    return std::tie(a, b, c, d, e, f, g);
  } else if constexpr (kNumColumns == 8) {
    auto& [a, b, c, d, e, f, g, h] = table;
    return std::tie(a, b, c, d, e, f, g, h);
  } else if constexpr (kNumColumns == 9) {
    auto& [a, b, c, d, e, f, g, h, i] = table;
    return std::tie(a, b, c, d, e, f, g, h, i);
  } else if constexpr (kNumColumns == 10) {
    auto& [a, b, c, d, e, f, g, h, i, j] = table;
    return std::tie(a, b, c, d, e, f, g, h, i, j);
  } else {
    auto& [a, b, c, d, e, f, g, h, i, j, k] = table;
    return std::tie(a, b, c, d, e, f, g, h, i, j, k);
  }
}

// Calls visit(column) for each column; where other tables of the same columns are given,
// visit(column, the same column of the others...).
template <typename Table, typename Visit, typename... Others>
void each_column(Table& table, Visit visit, Others&... others) {
  const auto columns = columns_of(table);
  const auto visit_one = [&]<std::size_t index>() {
    visit(std::get<index>(columns), std::get<index>(columns_of(others))...);
  };
  [&]<std::size_t... index>(std::index_sequence<index...>) {
    (visit_one.template operator()<index>(), ...);
  }
  (std::make_index_sequence<std::tuple_size_v<decltype(columns_of(table))>>());
}

// Gives a table this many rows. Their values are not set yet.
template <typename Table>
void make_rows(Table& table, std::size_t num_rows) {
  each_column(table, [&]<typename Column>(Column& column) { column = Column(num_rows); });
}

// Bytes that a row takes in its columns.
template <typename Table>
std::size_t row_bytes() {
  std::size_t bytes = 0;
  const Table table;
  each_column(table, [&](const auto& column) { bytes += sizeof(column[0]); });
  return bytes;
}

}  // namespace gpuwhy
