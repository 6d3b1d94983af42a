// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <deque>
#include <string>
#include <string_view>
#include <vector>

namespace llmprof {

// Records of a CSV text, one at a time. Cells may be quoted, hold commas, doubled quotes and line
// breaks. A quote that is never closed ends with its line, so that one bad line costs one record.
class CsvReader {
 public:
  explicit CsvReader(std::string_view text) : rest_(text) {}

  // The first line not read yet, without its end; empty at the end of the text.
  std::string_view peek_line() const;
  void skip_line();
  bool is_done() const { return rest_.empty(); }

  // The next record; its cells are valid until the next call. At most kMostCells: what a line has
  // beyond them is dropped.
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

// `text` as one cell: quoted where it must be, and printable(), but for its line breaks.
std::string csv_cell(std::string_view text);

}  // namespace llmprof
