// SPDX-License-Identifier: Apache-2.0
//
// HTML page of a merged job with a heat map: one row per node, one cell per rank.
//
// A cell's colour shows the deviation from the median of its stage. Plain HTML without scripts: ten
// thousand cells are few for a browser, and every outlier cell also has its percentage as text, for
// readers who cannot see colours.
#include <map>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "base/json.h"
#include "base/units.h"
#include "report/fleet.h"
#include "report/html_parts.h"
#include "report/section_parts.h"

namespace gpuwhy {
namespace {

// Slower is red, faster is blue; the same limits as in the legend below.
const char* shade(double fraction) {
  if (fraction >= 0.20) {
    return "s3";
  }
  if (fraction >= 0.10) {
    return "s2";
  }
  if (fraction >= 0.03) {
    return "s1";
  }
  if (fraction > -0.03) {
    return "z";
  }
  return fraction > -0.10 ? "f1" : "f2";
}

std::string cell_html(const Json& rank, const Json& fraction) {
  const std::int64_t number = rank.is_number_integer() ? rank.get<std::int64_t>() : 0;
  if (!fraction.is_number()) {
    return fmt::format("<td class=\"x\" title=\"rank {}: n/a\">n/a</td>", number);
  }
  const double off = fraction.get<double>();
  const char* kind = shade(off);
  return fmt::format(
      "<td class=\"{}\" title=\"rank {}: {}\">{}</td>", kind, number, format_change(off),
      std::string_view(kind) == "z" ? "&middot;" : fmt::format("{:+.0f}", off * 100));
}

std::string stage_html(const Json& heat, const Json& stage) {
  const Json& ranks = rows_of(heat, "ranks");
  const Json& nodes = rows_of(heat, "nodes");
  const Json& fractions = rows_of(stage, "deviation_fractions");
  // One row of cells per node, in the order of the first rank of each.
  std::map<std::string, std::string> rows;
  std::vector<std::string> order;
  for (std::size_t i = 0; i < fractions.size() && i < ranks.size() && i < nodes.size(); ++i) {
    const std::string node = nodes[i].is_string() ? nodes[i].get<std::string>() : "";
    if (!rows.contains(node)) {
      order.push_back(node);
    }
    rows[node] += cell_html(ranks[i], fractions[i]);
  }
  std::string text =
      fmt::format("<div class=\"scroll\"><table class=\"ranks\"><caption>{}</caption><tbody>\n",
                  html_words(text_of(stage, "stage")));
  for (const std::string& node : order) {
    text += fmt::format("<tr><th scope=\"row\">{}</th>{}</tr>\n",
                        html_words(node.empty() ? "n/a" : node), rows[node]);
  }
  return text + "</tbody></table></div>\n";
}

// What the summaries do not hold is listed once, not in a section each.
void gather_missing(Document& document) {
  Section gathered;
  gathered.id = "not-here";
  gathered.title = "Not available for these ranks";
  std::erase_if(document.sections, [&](const Section& section) {
    const bool is_missing = section.missing.starts_with("n/a");
    if (is_missing) {
      gathered.notes.push_back(fmt::format("{}: {}", section.title, section.missing));
    }
    return is_missing;
  });
  if (!gathered.notes.empty()) {
    document.sections.push_back(std::move(gathered));
  }
}

std::string nav_html(const Document& document) {
  std::string text = "<nav aria-label=\"Sections\">";
  for (const Section& section : document.sections) {
    const std::string title = section.title.substr(0, section.title.find_first_of(",:"));
    text += fmt::format("<a href=\"#{}\">{}</a> ", section.id, html_words(title));
  }
  return text + "<a href=\"#heat\">Heat map</a></nav>";
}

}  // namespace

std::string fleet_page(const Json& fleet, std::size_t top) {
  Document document = fleet_document(fleet, top);
  gather_missing(document);
  std::string text = html_text(document, &fleet);
  text += fmt::format(
      "<section id=\"heat\"><h2>Heat map</h2>\n<p>One row per node, one cell per rank: percent off the "
      "median over ranks, by {}. Shades begin at 3, 10 and 20 % slower, and at 3 and 10 % "
      "faster.</p>\n",
      html_words(text_of(fleet, "quantity")));
  const Json& heat = field_of(fleet, "heat");
  for (const Json& stage : rows_of(heat, "stages")) {
    text += stage_html(heat, stage);
  }
  text += "</section>\n";
  const std::string style =
      std::string(web_file("report.css")) + std::string(web_file("fleet.css"));
  const std::string policy = fmt::format(
      "default-src 'none'; style-src {}; base-uri 'none'; form-action 'none'", source_hash(style));
  const std::string title = html_words(document.title);
  const std::string nav = nav_html(document);
  return filled_page(web_file("comparison.html"), {{"policy", policy},
                                                   {"style", style},
                                                   {"title", title},
                                                   {"kind", "fleet report"},
                                                   {"nav", nav},
                                                   {"core", text}});
}

}  // namespace gpuwhy
