// SPDX-License-Identifier: Apache-2.0
//
// Tables of an nsys export that can be read, and what becomes of the others.
//
// A table may lack columns. Each table has some without which its rows say nothing: the times of
// kernels, the text of a message. Where one of these is missing, an export without texts or
// kernels is refused, and any other table is left out as if it were not there, with a diagnostic.
// All other columns read as null.
#pragma once

#include <set>
#include <string>
#include <string_view>

#include "ingest/sqlite/sqlite_file.h"
#include "results/diagnostic.h"

namespace gpuwhy {

class NsysTables {
 public:
  // Throws kInput if a table that analysis is about lacks a needed column.
  explicit NsysTables(const SqliteFile& file);

  // It is there, and has the columns that it needs. `table` is one that nsys_tables.cc lists.
  bool has(std::string_view table) const;
  // All its rows; none where it cannot be read.
  TableScan scan(std::string_view table, std::vector<std::string> columns) const;
  const SqliteFile& file() const { return file_; }
  // One for each table that was left out.
  const Diagnostics& left_out() const { return left_out_; }

 private:
  const SqliteFile& file_;
  std::set<std::string_view> readable_;
  Diagnostics left_out_;
};

}  // namespace gpuwhy
