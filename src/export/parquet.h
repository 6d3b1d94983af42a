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
#include <string>
#include <utility>
#include <vector>

#include "base/file.h"
#include "results/columns.h"

namespace gpuwhy {

inline constexpr std::size_t kRowGroupRows = std::size_t{1} << 17;

// Writes the whole file; `metadata` are its pairs of key and value. The caller commits.
void write_parquet(const ColumnTable& table,
                   const std::vector<std::pair<std::string, std::string>>& metadata,
                   const std::string& created_by, FileWriter& file,
                   std::size_t rows_per_group = kRowGroupRows);

}  // namespace gpuwhy
