// SPDX-License-Identifier: Apache-2.0
//
// Terminal form of documents: wrapped sentences, aligned columns, numbers to the right.
//
// Sentences and shares are wrapped with a hanging indent; tables are fitted to the width.
// Without a window nothing is, so that scripts and files get everything.
#include <algorithm>

#include <fmt/format.h>

#include "base/cut_name.h"
#include "base/text.h"
#include "report/document/document.h"

namespace gpuwhy {
namespace {

constexpr std::size_t kGap = 2;
constexpr std::size_t kGoodLast = 20;   // of a last column of words or names
constexpr std::size_t kLeastLast = 10;  // below, a table is wider than the terminal

enum class Weight { kBold, kDim, kWarning, kAlarm };

// `text` with an escape sequence around it, where colour is allowed.
std::string styled(Weight weight, const std::string& text, TerminalForm form) {
  if (!form.has_color || text.empty()) {
    return text;
  }
  const char* code = weight == Weight::kBold      ? "1"
                     : weight == Weight::kDim     ? "2"
                     : weight == Weight::kWarning ? "33"
                                                  : "1;31";
  return fmt::format("\x1b[{}m{}\x1b[0m", code, text);
}

bool is_left(CellFormat unit) {
  return unit == CellFormat::kText || unit == CellFormat::kName || unit == CellFormat::kShares;
}

// A table as text, fitted to the terminal's width: first columns without a value go, then those
// that are the same in all rows, then headings take several lines, then names are truncated. What
// still does not fit follows below, beside the first column again. The last column holds shares and
// long names: it takes the width that is left.
class FittedTable {
 public:
  FittedTable(const ReportTable& table, std::size_t width) : table_(table), width_(width) {
    for (const ReportRow& row : table.rows) {
      std::vector<std::string>& made = cells_.emplace_back();
      made.reserve(table.columns.size());
      for (const ReportValue& cell : row.cells) {
        made.push_back(cell.unit == CellFormat::kName ? cut_name(shown(cell)) : shown(cell));
      }
      made.resize(table.columns.size());
    }
    for (std::size_t i = 0; i < table.columns.size(); ++i) {
      columns_.push_back({i, {table.columns[i].title}, 0});
    }
    measure();
    if (!fits()) {
      drop_empty_columns();
    }
    if (!fits()) {
      drop_equal_columns();
    }
    if (!fits()) {
      break_headings();
    }
    if (!fits()) {
      truncate_names();
    }
  }

  std::string text(TerminalForm form) const {
    std::string text = table_.title.empty() ? "" : wrapped("  " + table_.title, width_, 2) + "\n";
    if (!equal_.empty()) {
      text += styled(Weight::kDim, wrapped("  In all rows: " + equal_, width_, 2), form) + "\n";
    }
    FittedTable part = *this;
    text += part.cut().block(form, true);
    while (!part.rest_.empty()) {
      part.columns_ = {part.columns_.front()};
      part.columns_.insert(part.columns_.end(), part.rest_.begin(), part.rest_.end());
      part.rest_.clear();
      text += part.cut().block(form, false);
    }
    return text;
  }

 private:
  struct Column {
    std::size_t index = 0;
    std::vector<std::string> heading;  // lines
    std::size_t width = 0;
  };

  // Leaves columns for a block below where numbers would not fit.
  const FittedTable& cut() {
    constexpr std::size_t kLeastColumns = 2;
    while (columns_.size() > kLeastColumns && is_too_wide()) {
      rest_.insert(rest_.begin(), columns_.back());
      columns_.pop_back();
    }
    return *this;
  }

  // A last column of names takes what is left, down to a least width.
  bool is_too_wide() const { return !fits() && (!is_fitted_last() || last_width() == SIZE_MAX); }

  std::string block(TerminalForm form, bool has_details) const {
    std::string text;
    std::size_t num_lines = 1;
    for (const Column& column : columns_) {
      num_lines = std::max(num_lines, column.heading.size());
    }
    for (std::size_t i = 0; i < num_lines; ++i) {
      // Headings end on the line above the rows.
      const auto heading = [&](const Column& column) {
        const std::size_t skipped = num_lines - column.heading.size();
        return i < skipped ? std::string() : column.heading[i - skipped];
      };
      text += styled(Weight::kDim, line_of(heading), form) + "\n";
    }
    for (std::size_t row = 0; row < cells_.size(); ++row) {
      const std::string line =
          line_of([&](const Column& column) { return cells_[row][column.index]; });
      text += (last_width() == SIZE_MAX ? line : wrapped(line, width_, before_last())) + "\n";
      if (has_details && !table_.rows[row].detail.empty()) {
        text += wrapped("      " + table_.rows[row].detail, width_, 6) + "\n";
      }
    }
    return text;
  }

  // Widths as they would be without any limit.
  void measure() {
    for (Column& column : columns_) {
      column.width = 0;
      for (const std::string& line : column.heading) {
        column.width = std::max(column.width, display_width(line));
      }
      for (const std::vector<std::string>& row : cells_) {
        column.width = std::max(column.width, display_width(row[column.index]));
      }
    }
  }

  std::size_t before_last() const {
    std::size_t width = kGap;
    for (std::size_t i = 0; i + 1 < columns_.size(); ++i) {
      width += columns_[i].width + kGap;
    }
    return width;
  }

  // What is left for the last column; SIZE_MAX where that is too little to be of use.
  std::size_t last_width() const {
    const std::size_t before = before_last();
    return width_ > before + kLeastLast ? width_ - before : SIZE_MAX;
  }

  bool is_fitted_last() const { return is_left(table_.columns[columns_.back().index].unit); }

  // Without a terminal (width 0) everything fits.
  bool fits() const {
    if (width_ == 0 || columns_.empty()) {
      return true;
    }
    const std::size_t last = columns_.back().width;
    return before_last() + (is_fitted_last() ? std::min(last, kGoodLast + 1) : last) <= width_;
  }

  // A column in which every row is n/a says nothing that its absence does not.
  void drop_empty_columns() {
    std::vector<Column> kept;
    for (Column& column : columns_) {
      const bool is_empty = std::all_of(
          cells_.begin(), cells_.end(),
          [&](const std::vector<std::string>& row) { return row[column.index] == "n/a"; });
      if (!is_empty) {
        kept.push_back(std::move(column));
      }
    }
    columns_ = std::move(kept);
  }

  // A word that is the same in all rows is said once, above them. Numbers stay, and the last
  // column.
  void drop_equal_columns() {
    std::vector<Column> kept;
    for (std::size_t i = 0; i < columns_.size(); ++i) {
      const std::size_t index = columns_[i].index;
      const CellFormat unit = table_.columns[index].unit;
      const bool is_word = unit == CellFormat::kText || unit == CellFormat::kName;
      const bool is_equal =
          is_word && i > 0 && i + 1 < columns_.size() && cells_.size() > 1 &&
          std::all_of(cells_.begin(), cells_.end(), [&](const std::vector<std::string>& row) {
            return row[index] == cells_.front()[index];
          });
      if (!is_equal) {
        kept.push_back(std::move(columns_[i]));
        continue;
      }
      equal_ += fmt::format("{}{} {}", equal_.empty() ? "" : ", ", table_.columns[index].title,
                            cells_.front()[index]);
    }
    columns_ = std::move(kept);
  }

  // Headings break between words, into as many lines as keep the column as narrow as its cells.
  void break_headings() {
    for (Column& column : columns_) {
      std::size_t width = 0;
      for (const std::vector<std::string>& row : cells_) {
        width = std::max(width, display_width(row[column.index]));
      }
      const std::string& title = table_.columns[column.index].title;
      column.heading.clear();
      for (const std::string_view word : split(title, ' ')) {
        const bool goes_on =
            !column.heading.empty() &&
            display_width(column.heading.back()) + 1 + display_width(word) <= width;
        if (goes_on) {
          column.heading.back().append(" ").append(word);
        } else {
          column.heading.emplace_back(word);
        }
      }
    }
    measure();
  }

  // The widest column of names gives way first. Numbers are never cut: half a number is a wrong
  // one.
  void truncate_names() {
    constexpr std::size_t kLeastName = 12;
    while (!fits()) {
      Column* widest = nullptr;
      for (std::size_t i = 0; i + 1 < columns_.size(); ++i) {
        Column& column = columns_[i];
        const bool is_name = is_left(table_.columns[column.index].unit);
        if (is_name && column.width > kLeastName &&
            (widest == nullptr || column.width > widest->width)) {
          widest = &column;
        }
      }
      if (widest == nullptr) {
        return;
      }
      --widest->width;
    }
  }

  template <typename CellOf>
  std::string line_of(const CellOf& cell_of) const {
    std::string line;
    for (std::size_t i = 0; i < columns_.size(); ++i) {
      const Column& column = columns_[i];
      const CellFormat unit = table_.columns[column.index].unit;
      const bool is_last = i + 1 == columns_.size();
      std::string cell = cell_of(column);
      if (!is_last) {
        cell = shortened_inside(cell, column.width);
      } else if (unit == CellFormat::kName) {
        cell = shortened_inside(cell, last_width());
      }
      const std::size_t pad = column.width - std::min(column.width, display_width(cell));
      line.append(kGap, ' ');
      line += is_left(unit) ? cell + std::string(pad, ' ') : std::string(pad, ' ') + cell;
    }
    line.resize(line.find_last_not_of(' ') + 1);
    return line;
  }

  const ReportTable& table_;
  std::size_t width_;
  std::string equal_;         // columns that are the same in all rows, in words
  std::vector<Column> rest_;  // of a table that is too wide: for the block below
  std::vector<std::vector<std::string>> cells_;
  std::vector<Column> columns_;
};

// The saving, the name of the rule and its sentence, and below them what to do.
std::string advice_terminal(const AdviceCell& advice, TerminalForm form) {
  constexpr std::size_t kIndent = 14;
  const std::string worth = worth_text(advice, "first", "<= ");
  const std::string lead = fmt::format("  {:>10}  ", worth.empty() ? "-" : worth);
  std::string text =
      wrapped(fmt::format("{}{}: {}", lead, advice.id, advice.sentence), form.width, kIndent);
  // Styled when the lines are broken: an escape sequence has no width.
  text.replace(0, lead.size() + advice.id.size(),
               styled(advice.is_blocker ? Weight::kAlarm : Weight::kWarning, lead, form) +
                   styled(Weight::kBold, advice.id, form));
  return text + "\n" +
         wrapped(std::string(kIndent, ' ') + "-> " + advice.next, form.width, kIndent + 3) + "\n";
}

std::string section_terminal(const Section& section, TerminalForm form) {
  // The summary needs no heading: it is the first line.
  const bool has_heading = section.id != "summary";
  std::string text = has_heading ? "\n" + styled(Weight::kBold, section.title, form) + "\n" : "";
  const std::size_t indent = has_heading ? 2 : 0;
  const auto add = [&](std::size_t before, const std::string& sentence) {
    text += wrapped(std::string(before, ' ') + sentence, form.width, before) + "\n";
  };
  if (!section.missing.empty()) {
    add(indent, section.missing);
    return text;
  }
  for (std::size_t i = 0; i < section.paragraphs.size(); ++i) {
    if (i == 0 && !has_heading && form.has_color) {  // the verdict
      text += styled(Weight::kBold, wrapped(section.paragraphs[i], form.width, 0), form) + "\n";
    } else {
      add(indent, section.paragraphs[i]);
    }
  }
  for (const Fact& fact : section.facts) {
    const bool has_reason = !fact.value.is_known() && !fact.reason.empty();
    text += fmt::format("  {:<32} {}{}\n", fact.label, shown(fact.value),
                        has_reason ? " (" + fact.reason + ")" : "");
  }
  for (const AdviceCell& advice : section.advice) {
    text += advice_terminal(advice, form);
  }
  for (const ReportTable& table : section.tables) {
    text += table.rows.empty() ? "" : FittedTable(table, form.width).text(form);
  }
  for (const std::string& note : section.notes) {
    add(2, note);
  }
  for (const std::string& link : section.links) {
    text += "  " + link + "\n";
  }
  return text;
}

}  // namespace

std::string terminal_text(const Document& document, TerminalForm form) {
  std::string text = document.title.empty() ? "" : document.title + "\n\n";
  for (const Section& section : document.sections) {
    text += section_terminal(section, form);
  }
  return text;
}

}  // namespace gpuwhy
