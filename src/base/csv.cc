// SPDX-License-Identifier: Apache-2.0
//
// CSV reader and cell writer: RFC 4180, with the leniency that real files need.
//
// Cells are views into the text. Only cells with doubled quotes are copied.
#include "base/csv.h"

#include <algorithm>

#include "base/text.h"

namespace gpuwhy {
namespace {

// A cell this long is an unclosed quote, not a cell.
constexpr std::size_t kLongestCell = 1 << 20;

}  // namespace

std::string_view CsvReader::peek_line() const {
  std::string_view line = rest_.substr(0, rest_.find('\n'));
  if (line.ends_with('\r')) {
    line.remove_suffix(1);
  }
  return line;
}

void CsvReader::skip_line() {
  rest_.remove_prefix(std::min(rest_.size(), rest_.substr(0, rest_.find('\n')).size() + 1));
}

// From an opening quote to the closing one; consumes both.
std::string_view CsvReader::take_quoted() {
  const std::string_view window = rest_.substr(0, kLongestCell);
  bool has_doubled = false;
  for (std::size_t i = 1; i < window.size(); ++i) {
    if (window[i] != '"') {
      continue;
    }
    if (i + 1 < rest_.size() && rest_[i + 1] == '"') {
      has_doubled = true;
      ++i;
      continue;
    }
    std::string_view cell = rest_.substr(1, i - 1);
    rest_.remove_prefix(i + 1);
    if (has_doubled) {
      if (num_unescaped_ == unescaped_.size()) {
        unescaped_.emplace_back();
      }
      std::string& copy = unescaped_[num_unescaped_++];
      copy.clear();
      for (std::size_t at = 0; at < cell.size(); ++at) {
        copy += cell[at];
        at += cell[at] == '"' ? 1 : 0;
      }
      cell = copy;
    }
    return cell;
  }
  return take_plain();  // never closed
}

// Up to the next comma or line end; a carriage return before the line end is dropped.
std::string_view CsvReader::take_plain() {
  const std::string_view cell = rest_.substr(0, rest_.find_first_of(",\n"));
  rest_.remove_prefix(cell.size());
  return cell.ends_with('\r') ? cell.substr(0, cell.size() - 1) : cell;
}

const std::vector<std::string_view>& CsvReader::next() {
  cells_.clear();
  num_unescaped_ = 0;
  while (!rest_.empty()) {
    const std::string_view cell = rest_.front() == '"' ? take_quoted() : take_plain();
    if (cells_.size() < kMostCells) {
      cells_.push_back(cell);
    }
    rest_.remove_prefix(std::min(rest_.find_first_of(",\n"), rest_.size()));
    if (rest_.empty()) {
      break;
    }
    const bool is_end = rest_.front() == '\n';
    rest_.remove_prefix(1);
    if (is_end) {
      break;
    }
    if (rest_.empty() && cells_.size() < kMostCells) {
      cells_.emplace_back();  // the text ends in a comma
    }
  }
  return cells_;
}

std::string csv_cell(std::string_view text) {
  std::string safe;
  const char* separator = "";
  for (const std::string_view line : split(text, '\n')) {
    safe.append(separator).append(printable(line));
    separator = "\n";
  }
  if (safe.find_first_of(",\"\n") == std::string::npos) {
    return safe;
  }
  std::string cell = "\"";
  for (const char c : safe) {
    cell += c == '"' ? std::string("\"\"") : std::string(1, c);
  }
  return cell + "\"";
}

}  // namespace gpuwhy
