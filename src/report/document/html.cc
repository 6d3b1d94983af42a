// SPDX-License-Identifier: Apache-2.0
//
// HTML form of report sections.
//
// Some viewers run no scripts and apply no styles (a Jenkins with its default policy does neither),
// so the sections must be sufficient by themselves. Names and sentences are untrusted: every
// character with a meaning in HTML is written as an entity, in text and in attributes.
#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "base/cut_name.h"
#include "base/error.h"
#include "base/json_path.h"
#include "base/text.h"
#include "report/document/document.h"
#include "report/document/html_parts.h"
#include "report/document/section_parts.h"
#include "report/words/key_words.h"
#include "results/catalog.h"

namespace gpuwhy {
namespace {

// A key with such a name is not worth its space.
constexpr std::size_t kLongestKey = 400;

// Also for attributes, so both quotes are escaped.
std::string escaped(std::string_view text) {
  std::string safe;
  safe.reserve(text.size());
  for (const char c : text) {
    switch (c) {
      case '<':
        safe += "&lt;";
        break;
      case '>':
        safe += "&gt;";
        break;
      case '&':
        safe += "&amp;";
        break;
      case '"':
        safe += "&quot;";
        break;
      case '\'':
        safe += "&#39;";
        break;
      default:
        safe += c;
    }
  }
  return safe;
}

std::string attributes(const ReportValue& value) {
  if (value.key.empty() || value.key.size() > kLongestKey || !value.number()) {
    return "";
  }
  const auto* integer = std::get_if<std::int64_t>(&value.value);
  return fmt::format(" data-key=\"{}\" data-value=\"{}\"", html_words(value.key),
                     integer == nullptr ? json_number(*value.number()) : std::to_string(*integer));
}

std::string value_html(const ReportValue& value) {
  const std::string text = shown(value);
  return value.unit == CellFormat::kName && value.text() != nullptr
             ? "<code>" + escaped(cut_name(text)) + "</code>"
             : escaped(text);
}

// The largest difference in a column, to which its bars are scaled. A sum would dwarf its parts, so
// it has no bar.
double scale_of(const ReportTable& table, std::size_t column) {
  double largest = 0;
  for (const ReportRow& row : table.rows) {
    const double number = row.cells[column].number().value_or(0);
    largest = std::max(largest, row.is_sum ? 0 : std::abs(number));
  }
  return largest;
}

// Drawn by attributes, which a policy on styles does not affect; the number next to it says the
// same.
std::string bar_html(double number, double scale) {
  constexpr double kHalf = 100;
  const double length = scale > 0 ? std::abs(number) / scale * (kHalf - 1) : 0;
  return fmt::format(
      "<td class=\"bar-cell\"><svg class=\"diverge\" width=\"200\" height=\"14\" "
      "viewBox=\"0 0 200 14\" preserveAspectRatio=\"none\" aria-hidden=\"true\"><rect class=\"{}\" "
      "x=\"{:.2f}\" y=\"2\" width=\"{:.2f}\" height=\"10\"/><path class=\"axis\" "
      "d=\"M100 0V14\"/></svg></td>",
      number > 0 ? "more" : "less", number < 0 ? kHalf - length : kHalf, length);
}

// Its rows become cards where a page is narrow, and cells say what they are.
bool has_names(const ReportTable& table) {
  return std::ranges::any_of(table.columns, &ReportColumn::is_name);
}

std::string row_html(const ReportTable& table, const ReportRow& row,
                     const std::vector<double>& scales, bool has_details) {
  const bool is_stacked = has_names(table);
  std::string text = row.is_sum ? "<tr class=\"sum\">" : "<tr>";
  for (std::size_t i = 0; i < row.cells.size(); ++i) {
    if (i < table.columns.size() && table.columns[i].has_bar) {
      text += row.is_sum ? "<td></td>" : bar_html(row.cells[i].number().value_or(0), scales[i]);
    }
    const bool has_label = is_stacked && i < table.columns.size();
    const bool is_name = has_label && table.columns[i].is_name;
    text += fmt::format(
        "<td{}{}{}>{}</td>",
        is_name                        ? " class=\"name\""
        : is_number(row.cells[i].unit) ? " class=\"n\""
                                       : "",
        has_label && !is_name ? " data-label=\"" + escaped(table.columns[i].title) + "\"" : "",
        attributes(row.cells[i]), value_html(row.cells[i]));
  }
  return text + (has_details ? "<td>" + html_words(row.detail) + "</td></tr>\n" : "</tr>\n");
}

std::string table_html(const ReportTable& table, const std::string& label, std::size_t place) {
  bool has_details = false;
  for (const ReportRow& row : table.rows) {
    has_details = has_details || !row.detail.empty();
  }
  // Focusable, because it scrolls sideways if it is wider than the page.
  std::string text = fmt::format(
      "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"Table {} of {}\"><table{}>"
      "<caption{}>{}</caption><thead><tr>",
      place + 1, html_words(label), has_names(table) ? " class=\"cards\"" : "",
      table.title.empty() ? " class=\"same\"" : "",
      html_words(table.title.empty() ? label : table.title));
  std::vector<double> scales;
  for (const ReportColumn& column : table.columns) {
    scales.push_back(column.has_bar ? scale_of(table, scales.size()) : 0);
    text += column.has_bar ? "<th scope=\"col\" class=\"bar-cell\">less time | more time</th>" : "";
    text += fmt::format("<th scope=\"col\"{}>{}</th>", is_number(column.unit) ? " class=\"n\"" : "",
                        escaped(column.title));
  }
  text +=
      has_details ? "<th scope=\"col\">why</th></tr></thead>\n<tbody>" : "</tr></thead>\n<tbody>";
  for (const ReportRow& row : table.rows) {
    text += row_html(table, row, scales, has_details);
  }
  return text + "</tbody></table></div>\n";
}

CellFormat unit_of_path(const std::vector<PathStep>& path) {
  const MetricInfo* info = metric_info(path_pattern(path));
  const std::string_view unit = info == nullptr ? "" : info->unit;
  return unit == "ns"         ? CellFormat::kDuration
         : unit == "fraction" ? CellFormat::kFraction
         : unit == "bytes"    ? CellFormat::kBytes
                              : CellFormat::kText;
}

std::string evidence_html(const std::string& key, const Json* metrics) {
  ReportValue value{{}, CellFormat::kText, key};
  try {
    const std::vector<PathStep> path = parse_path(key);
    if (const Json* found = metrics == nullptr ? nullptr : find_path(*metrics, path);
        found != nullptr) {
      value.value = cell_of(*found);
      value.unit = unit_of_path(path);
    }
  } catch (const Error&) {
    // Not a path: another program's metrics.json. The key is shown anyway.
  }
  // The key itself is for those who ask `gpuwhy explain` about it.
  return fmt::format("<li data-evidence=\"{0}\" title=\"{0}\"><span>{1}</span>{2}</li>",
                     html_words(key.substr(0, kLongestKey)), html_words(key_words(key)),
                     value.is_known() ? fmt::format(" <b{}>{}</b>", attributes(value),
                                                    escaped(cut_name(shown(value))))
                                      : "");
}

std::string advice_html(const AdviceCell& advice, const Json* metrics) {
  std::string worth = worth_text(advice, "fix this first", "saves at most ");
  worth += worth.empty() ? "" : ", ";
  std::string evidence;
  for (const std::string& key : advice.evidence) {
    evidence += evidence_html(key, metrics);
  }
  const std::string cost = advice.effort.empty()
                               ? ""
                               : fmt::format("<p class=\"cost\">Effort: {}. Risk: {}.</p>",
                                             html_words(advice.effort), html_words(advice.risk));
  return fmt::format(
      "<li class=\"finding\"><h3>{} <code>{}</code></h3><p class=\"worth\">{}{} confidence</p>\n"
      "<p>{}{}</p><p class=\"next\">Next: {}{}</p>{}{}</li>\n",
      html_words(advice.title), html_words(advice.id), html_words(worth),
      html_words(advice.confidence), html_words(advice.sentence), full_stop(advice.sentence),
      html_words(advice.next), full_stop(advice.next), cost,
      evidence.empty() ? ""
                       : "<ul class=\"evidence\" aria-label=\"Evidence\">" + evidence + "</ul>");
}

std::string facts_html(const std::vector<Fact>& facts) {
  std::string text = "<dl>";
  for (const Fact& fact : facts) {
    const bool has_reason = !fact.value.is_known() && !fact.reason.empty();
    text += fmt::format("<div><dt>{}</dt><dd{}>{}{}</dd></div>\n", escaped(fact.label),
                        attributes(fact.value), value_html(fact.value),
                        has_reason ? " <small>(" + html_words(fact.reason) + ")</small>" : "");
  }
  return text + "</dl>\n";
}

std::string list_html(const std::vector<std::string>& items, const char* kind, bool are_links) {
  std::string text = fmt::format("<ul class=\"{}\">", kind);
  for (const std::string& item : items) {
    text += are_links ? fmt::format("<li><a href=\"{0}\">{0}</a></li>\n", escaped(item))
                      : "<li>" + html_words(item) + "</li>\n";
  }
  return text + "</ul>\n";
}

// A section without data keeps its heading and says what is missing: a link to it still works.
std::string section_html(const Section& section, const Json* metrics) {
  std::string text = fmt::format(
      "<section id=\"{0}\" aria-labelledby=\"{0}-title\"><h2 id=\"{0}-title\">{1}</h2>\n",
      section.id, escaped(section.title));
  if (!section.missing.empty()) {
    return text + "<p class=\"missing\">" + html_words(section.missing) + ".</p></section>\n";
  }
  for (const std::string& paragraph : section.paragraphs) {
    text += "<p>" + html_words(paragraph) + "</p>\n";
  }
  text += section.facts.empty() ? "" : facts_html(section.facts);
  if (!section.advice.empty()) {
    text += "<ol class=\"findings\">";
    for (const AdviceCell& advice : section.advice) {
      text += advice_html(advice, metrics);
    }
    text += "</ol>\n";
  }
  for (std::size_t i = 0; i < section.tables.size(); ++i) {
    text += section.tables[i].rows.empty() ? "" : table_html(section.tables[i], section.title, i);
  }
  text += section.notes.empty() ? "" : list_html(section.notes, "notes", false);
  text += section.links.empty() ? "" : list_html(section.links, "links", true);
  return text + "</section>\n";
}

}  // namespace

std::string html_words(std::string_view text) {
  return escaped(printable(text));
}

std::string html_value(const ReportValue& value) {
  return fmt::format("<span{}>{}</span>", attributes(value), value_html(value));
}

std::string html_text(const Document& document, const Json* metrics) {
  std::string text;
  for (const Section& section : document.sections) {
    text += section_html(section, metrics);
  }
  return text;
}

}  // namespace gpuwhy
