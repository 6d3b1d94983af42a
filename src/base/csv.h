// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <deque>
#include <string>
#include <string_view>
#include <vector>

namespace gpuwhy {

// The records of a CSV text, one at a time. Cells may be quoted and may hold commas, doubled quotes
// and line breaks. An unclosed quote ends with its line, so one bad line costs one record.
class CsvReader {
 public:
  explicit CsvReader(std::string_view text) : rest_(text) {}

  // The first line not read yet, without its end; empty at the end of the text.
  std::string_view peek_line() const;
  void skip_line();
  bool is_done() const { return rest_.empty(); }

  // The next record. Its cells are valid until the next call. Cells beyond kMostCells are dropped.
  const std::vector<std::string_view>& next();

  static constexpr std::size_t kMostCells = 32'768;

 private:
  std::string_view take_quoted();
  std::string_view take_plain();

  std::string_view rest_;
  std::vector<std::string_view> cells_;
  std::deque<std::string> unescaped_;  // cells that held doubled quotes; a deque moves none of them
  std::size_t num_unescaped_ = 0;
};

// `text` as one cell: printable() except for line breaks, and quoted if necessary.
std::string csv_cell(std::string_view text);

}  // namespace gpuwhy
