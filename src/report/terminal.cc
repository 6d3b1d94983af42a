// SPDX-License-Identifier: Apache-2.0
//
// Terminal form of documents: wrapped sentences, aligned columns, numbers to the right.
//
// Sentences and shares are wrapped with a hanging indent; names in a last column are truncated.
// Without a window nothing is, so that scripts and files get everything.
#include <algorithm>

#include <fmt/format.h>

#include "base/text.h"
#include "report/document.h"

namespace llmprof {
namespace {

constexpr std::size_t kGap = 2;
constexpr std::size_t kLeastLast = 20;

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

bool is_left(Unit unit) {
  return unit == Unit::kText || unit == Unit::kName || unit == Unit::kShares;
}

std::string table_terminal(const ReportTable& table, TerminalForm form) {
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
  // Only the last column is fitted to the terminal's width; it holds shares and long names.
  std::size_t before_last = kGap;
  for (std::size_t i = 0; i + 1 < widths.size(); ++i) {
    before_last += widths[i] + kGap;
  }
  const std::size_t last =
      form.width > before_last + kLeastLast ? form.width - before_last : SIZE_MAX;
  const bool has_words = !table.columns.empty() && table.columns.back().unit != Unit::kName;
  std::string text = table.title.empty() ? "" : wrapped("  " + table.title, form.width, 2) + "\n";
  const auto add_line = [&](const auto& cell_at, bool is_heading) {
    std::string line;
    for (std::size_t i = 0; i < widths.size(); ++i) {
      const bool is_cut = i + 1 == widths.size() && !has_words;
      const std::string cell = is_cut ? shortened_inside(cell_at(i), last) : cell_at(i);
      const std::size_t pad = widths[i] - std::min(widths[i], display_width(cell));
      line.append(kGap, ' ');
      line += is_left(table.columns[i].unit) ? cell + std::string(pad, ' ')
                                             : std::string(pad, ' ') + cell;
    }
    line.resize(line.find_last_not_of(' ') + 1);
    if (is_heading) {
      text += styled(Weight::kDim, line, form) + "\n";
    } else {
      text += (last == SIZE_MAX ? line : wrapped(line, form.width, before_last)) + "\n";
    }
  };
  add_line([&](std::size_t i) { return table.columns[i].title; }, true);
  for (std::size_t row = 0; row < cells.size(); ++row) {
    add_line([&](std::size_t i) { return cells[row][i]; }, false);
    if (!table.rows[row].detail.empty()) {
      text += wrapped("      " + table.rows[row].detail, form.width, 6) + "\n";
    }
  }
  return text;
}

// The saving, the name of the rule and its sentence, and below them what to do.
std::string advice_terminal(const Advice& advice, TerminalForm form) {
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
  for (const Advice& advice : section.advice) {
    text += advice_terminal(advice, form);
  }
  for (const ReportTable& table : section.tables) {
    text += table.rows.empty() ? "" : table_terminal(table, form);
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

}  // namespace llmprof
