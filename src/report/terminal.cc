// SPDX-License-Identifier: Apache-2.0
//
// Terminal form of documents: aligned columns, numbers to the right, last column truncated to the
// window.
//
// Without a window nothing is truncated, so that scripts and files get everything.
#include <algorithm>

#include <fmt/format.h>

#include "base/text.h"
#include "report/document.h"

namespace llmprof {
namespace {

constexpr std::size_t kGap = 2;
constexpr std::size_t kLeastLast = 20;

bool is_left(Unit unit) {
  return unit == Unit::kText || unit == Unit::kName || unit == Unit::kShares;
}

// The first `width` columns; truncated text ends in "...".
std::string cut(const std::string& text, std::size_t width) {
  if (display_width(text) <= width) {
    return text;
  }
  std::string kept;
  std::size_t columns = 0;
  for (const char c : text) {
    const bool starts_character = (static_cast<unsigned char>(c) & 0xC0U) != 0x80U;
    columns += starts_character ? 1 : 0;
    if (columns + 3 > width) {
      break;
    }
    kept += c;
  }
  return kept + "...";
}

std::string table_terminal(const ReportTable& table, std::size_t width) {
  std::vector<std::size_t> widths;
  for (const ReportColumn& column : table.columns) {
    widths.push_back(display_width(column.title));
  }
  std::vector<std::vector<std::string>> cells;
  for (const ReportRow& row : table.rows) {
    std::vector<std::string>& made = cells.emplace_back();
    for (std::size_t i = 0; i < row.cells.size(); ++i) {
      made.push_back(shown(row.cells[i]));
      widths[i] = std::max(widths[i], display_width(made.back()));
    }
  }
  // Only the last column is cut to the terminal's width; it holds the long names.
  std::size_t before_last = kGap;
  for (std::size_t i = 0; i + 1 < widths.size(); ++i) {
    before_last += widths[i] + kGap;
  }
  const std::size_t last = width > before_last + kLeastLast ? width - before_last : SIZE_MAX;
  std::string text = table.title.empty() ? "" : "  " + table.title + "\n";
  const auto add_line = [&](const auto& cell_at) {
    std::string line;
    for (std::size_t i = 0; i < widths.size(); ++i) {
      const std::string cell = i + 1 == widths.size() ? cut(cell_at(i), last) : cell_at(i);
      const std::size_t pad = widths[i] - std::min(widths[i], display_width(cell));
      line.append(kGap, ' ');
      line += is_left(table.columns[i].unit) ? cell + std::string(pad, ' ')
                                             : std::string(pad, ' ') + cell;
    }
    text += line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
  };
  add_line([&](std::size_t i) { return table.columns[i].title; });
  for (std::size_t row = 0; row < cells.size(); ++row) {
    add_line([&](std::size_t i) { return cells[row][i]; });
    if (!table.rows[row].detail.empty()) {
      text += "      " + table.rows[row].detail + "\n";
    }
  }
  return text;
}

std::string section_terminal(const Section& section, std::size_t width) {
  // The summary needs no heading: it is the first line.
  const bool has_heading = section.id != "summary";
  std::string text = has_heading ? "\n" + section.title + "\n" : "";
  const char* indent = has_heading ? "  " : "";
  if (!section.missing.empty()) {
    return text + indent + section.missing + "\n";
  }
  for (const std::string& paragraph : section.paragraphs) {
    text += indent + paragraph + "\n";
  }
  for (const Fact& fact : section.facts) {
    const bool has_reason = !fact.value.is_known() && !fact.reason.empty();
    text += fmt::format("  {:<32} {}{}\n", fact.label, shown(fact.value),
                        has_reason ? " (" + fact.reason + ")" : "");
  }
  for (const Advice& advice : section.advice) {
    const std::string worth = worth_text(advice, "first", "<= ");
    text += fmt::format("  {:>10}  {}: {}\n{:14}-> {}\n", worth.empty() ? "-" : worth, advice.id,
                        advice.sentence, "", advice.next);
  }
  for (const ReportTable& table : section.tables) {
    text += table.rows.empty() ? "" : table_terminal(table, width);
  }
  for (const std::string& note : section.notes) {
    text += "  " + note + "\n";
  }
  for (const std::string& link : section.links) {
    text += "  " + link + "\n";
  }
  return text;
}

}  // namespace

std::string terminal_text(const Document& document, std::size_t width) {
  std::string text = document.title.empty() ? "" : document.title + "\n\n";
  for (const Section& section : document.sections) {
    text += section_terminal(section, width);
  }
  return text;
}

}  // namespace llmprof
