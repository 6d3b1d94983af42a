// SPDX-License-Identifier: Apache-2.0
//
// Markdown that renders on GitHub and reads in a plain viewer. Names come from strangers and hold
// every character a table or a code span is made of: a name never leaves its cell, and no sentence
// becomes a heading, a link, an image or HTML.
#include <fmt/format.h>

#include "base/text.h"
#include "report/document.h"

namespace llmprof {
namespace {

// Kernel names of 4 KB exist; what tells them apart stands in the first part.
constexpr std::size_t kLongestName = 300;

// A code span, in which only the two characters matter that end it or the cell. A backslash before
// a bar would take away the meaning of the one that is put there.
std::string code_span(std::string_view name) {
  const std::string_view kept = name.substr(0, kLongestName);
  std::string span;
  for (std::size_t i = 0; i < kept.size(); ++i) {
    const char c = kept[i];
    if (c == '|') {
      span += "\\|";
    } else if (c == '`') {
      span += '\'';
    } else if (c == '\\' && i + 1 < kept.size() && kept[i + 1] == '|') {
      span += "\\x5c";
    } else {
      span += c;
    }
  }
  // A cut inside a character leaves no half of it.
  while (name.size() > kLongestName && !span.empty() &&
         (static_cast<unsigned char>(span.back()) & 0x80U) != 0) {
    span.pop_back();
  }
  return "`" + (span.empty() ? " " : span) + (name.size() > kLongestName ? "...`" : "`");
}

// Words that hold no markup, whatever they are made of.
std::string plain(std::string_view text) {
  std::string safe;
  for (const char c : text) {
    switch (c) {
      case '<':
        safe += "&lt;";
        break;
      case '&':
        safe += "&amp;";
        break;
      case '\\':
      case '`':
      case '*':
      case '[':
      case ']':
      case '|':
      case '~':
        safe += '\\';
        safe += c;
        break;
      default:
        safe += c;
    }
  }
  return safe;
}

bool is_number(Unit unit) {
  return unit != Unit::kText && unit != Unit::kName && unit != Unit::kShares;
}

std::string cell_text(const ReportValue& value) {
  const std::string text = shown(value);
  return value.unit == Unit::kName && value.value.is_string() ? code_span(text) : plain(text);
}

std::string table_markdown(const ReportTable& table) {
  bool has_details = false;
  for (const ReportRow& row : table.rows) {
    has_details = has_details || !row.detail.empty();
  }
  std::string text = table.title.empty() ? "" : plain(table.title) + "\n\n";
  std::string rule;
  for (const ReportColumn& column : table.columns) {
    text += "| " + column.title + " ";
    rule += is_number(column.unit) ? "|---:" : "|---";
  }
  text += has_details ? "| why |\n" : "|\n";
  text += rule + (has_details ? "|---|\n" : "|\n");
  for (const ReportRow& row : table.rows) {
    for (const ReportValue& cell : row.cells) {
      text += "| " + cell_text(cell) + " ";
    }
    text += has_details ? "| " + plain(row.detail) + " |\n" : "|\n";
  }
  return text + "\n";
}

std::string advice_markdown(const Advice& advice) {
  std::string worth = advice.worth.empty() ? "" : ", worth at most " + advice.worth.substr(3);
  if (advice.worth == "first") {
    worth = ", before all else";
  }
  std::string evidence;
  for (const std::string& key : advice.evidence) {
    evidence += (evidence.empty() ? "" : ", ") + code_span(key);
  }
  return fmt::format("1. **{}**{} ({} confidence): {}.\n   Next: {}.\n   Evidence: {}\n",
                     plain(advice.id), plain(worth), plain(advice.confidence),
                     plain(advice.sentence), plain(advice.next),
                     evidence.empty() ? "n/a" : evidence);
}

std::string section_markdown(const Section& section) {
  std::string text = "## " + section.title + "\n\n";
  if (!section.missing.empty()) {
    return text + plain(section.missing) + ".\n\n";
  }
  for (const std::string& paragraph : section.paragraphs) {
    text += plain(paragraph) + "\n\n";
  }
  for (const Fact& fact : section.facts) {
    const bool has_reason = fact.value.value.is_null() && !fact.reason.empty();
    text += fmt::format("- {}: {}{}\n", fact.label, cell_text(fact.value),
                        has_reason ? " (" + plain(fact.reason) + ")" : "");
  }
  text += section.facts.empty() ? "" : "\n";
  for (const Advice& advice : section.advice) {
    text += advice_markdown(advice);
  }
  text += section.advice.empty() ? "" : "\n";
  for (const ReportTable& table : section.tables) {
    text += table.rows.empty() ? "" : table_markdown(table);
  }
  for (const std::string& note : section.notes) {
    text += "- " + plain(note) + "\n";
  }
  text += section.notes.empty() ? "" : "\n";
  for (const std::string& link : section.links) {
    text += fmt::format("- [{0}]({0})\n", link);
  }
  return text + (section.links.empty() ? "" : "\n");
}

}  // namespace

std::string markdown_text(const Document& document) {
  std::string text = document.title.empty() ? "" : "# " + document.title + "\n\n";
  for (const Section& section : document.sections) {
    text += section_markdown(section);
  }
  text.pop_back();  // one line end is enough
  return text;
}

}  // namespace llmprof
