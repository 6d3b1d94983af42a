// SPDX-License-Identifier: Apache-2.0
//
// Writer of Parquet files: a well-defined part of the format that every reader knows.
//
// Columns of whole numbers, booleans and texts, optional or required, without nesting; version 1
// data pages, one per column and row group; PLAIN, RLE_DICTIONARY and DELTA_BINARY_PACKED,
// whichever is smallest; gzip where it helps; statistics and checksums. Rows are asked for one
// group at a time, so memory does not grow with the table.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/file.h"

namespace gpuwhy {

enum class TableColumnType { kNumber, kFlag, kText };

// A column of a table, by row.
struct TableColumn {
  std::string name;  // with its unit
  TableColumnType type = TableColumnType::kNumber;
  bool is_optional = false;
  // nullopt: there is none. Of a flag 0 or 1, of a text its key.
  std::function<std::optional<std::int64_t>(std::size_t row)> value;
  // The text of a key. It stays valid until the table is written.
  std::function<std::string_view(std::int64_t key)> text = {};
};

struct ColumnTable {
  std::string name;
  std::size_t num_rows = 0;
  std::vector<TableColumn> columns;
};

inline constexpr std::size_t kRowGroupRows = std::size_t{1} << 17;

// Writes the whole file; `metadata` are its pairs of key and value. The caller commits.
void write_parquet(const ColumnTable& table,
                   const std::vector<std::pair<std::string, std::string>>& metadata,
                   const std::string& created_by, FileWriter& file,
                   std::size_t rows_per_group = kRowGroupRows);

}  // namespace gpuwhy
