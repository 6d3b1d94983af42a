// SPDX-License-Identifier: Apache-2.0
//
// Markdown form of documents, for GitHub and for plain viewers.
//
// Names are untrusted and may contain any character that has a meaning in tables or code spans: a
// name never leaves its cell, and no sentence becomes a heading, a link, an image or HTML.
#include <fmt/format.h>

#include "base/cut_name.h"
#include "base/text.h"
#include "report/document/document.h"
#include "report/document/section_parts.h"

namespace gpuwhy {
namespace {

// A code span, in which only the characters matter that end it or the cell. A backslash before a
// bar would cancel the escape that is added there.
std::string code_span(std::string_view kept) {
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
  return "`" + (span.empty() ? " " : span) + "`";
}

// Text without markup, whatever it contains.
std::string markdown_words(std::string_view text) {
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

std::string cell_text(const ReportValue& value) {
  const std::string text = shown(value);
  return value.text() == nullptr                ? markdown_words(text)
         : value.unit == CellFormat::kName      ? code_span(cut_name(text))
         : value.unit == CellFormat::kWholeName ? code_span(text)
                                                : markdown_words(text);
}

std::string table_markdown(const ReportTable& table) {
  // Details of rows become a column: markdown has no lines below a row.
  bool has_details = false;
  for (const ReportRow& row : table.rows) {
    has_details = has_details || !row.detail.empty();
  }
  std::string text = table.title.empty() ? "" : markdown_words(table.title) + "\n\n";
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
    text += has_details ? "| " + markdown_words(row.detail) + " |\n" : "|\n";
  }
  return text + "\n";
}

std::string advice_markdown(const AdviceCell& advice) {
  const std::string worth = worth_text(advice, ", fix this first", ", worth at most ");
  std::string evidence;
  for (const std::string& key : advice.evidence) {
    evidence += (evidence.empty() ? "" : ", ") + code_span(cut_name(key));
  }
  const std::string cost = advice.effort.empty() ? ""
                                                 : fmt::format("   Effort: {}. Risk: {}.\n",
                                                               markdown_words(advice.effort),
                                                               markdown_words(advice.risk));
  return fmt::format("1. **{}**{} ({} confidence): {}{}\n   Next: {}{}\n{}   Evidence: {}\n",
                     markdown_words(advice.id), markdown_words(worth),
                     markdown_words(advice.confidence), markdown_words(advice.sentence),
                     full_stop(advice.sentence), markdown_words(advice.next),
                     full_stop(advice.next), cost, evidence.empty() ? "n/a" : evidence);
}

// Same order as in the other formats: text, facts, findings, tables, notes, links.
std::string section_markdown(const Section& section) {
  std::string text = "## " + section.title + "\n\n";
  if (!section.missing.empty()) {
    return text + markdown_words(section.missing) + ".\n\n";
  }
  for (const std::string& paragraph : section.paragraphs) {
    text += markdown_words(paragraph) + "\n\n";
  }
  for (const Fact& fact : section.facts) {
    const bool has_reason = !fact.value.is_known() && !fact.reason.empty();
    text += fmt::format("- {}: {}{}\n", fact.label, cell_text(fact.value),
                        has_reason ? " (" + markdown_words(fact.reason) + ")" : "");
  }
  text += section.facts.empty() ? "" : "\n";
  for (const AdviceCell& advice : section.advice) {
    text += advice_markdown(advice);
  }
  text += section.advice.empty() ? "" : "\n";
  for (const ReportTable& table : section.tables) {
    text += table.rows.empty() ? "" : table_markdown(table);
  }
  for (const std::string& note : section.notes) {
    text += "- " + markdown_words(note) + "\n";
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

}  // namespace gpuwhy
