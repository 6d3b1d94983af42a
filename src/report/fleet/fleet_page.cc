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

#include "base/text.h"
#include "base/units.h"
#include "report/document/html_parts.h"
#include "report/fleet/fleet.h"

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

std::string cell_html(std::int64_t rank, const std::optional<double>& off) {
  if (!off) {
    return fmt::format("<td class=\"x\" title=\"rank {}: n/a\">n/a</td>", rank);
  }
  const char* kind = shade(*off);
  return fmt::format(
      "<td class=\"{}\" title=\"rank {}: {}\">{}</td>", kind, rank, format_change(*off),
      std::string_view(kind) == "z" ? "&middot;" : fmt::format("{:+.0f}", *off * 100));
}

std::string stage_html(const FleetHeat& heat, const StageDeviation& stage) {
  // One row of cells per node, in the order of the first rank of each.
  std::map<std::string, std::string> rows;
  std::vector<std::string> order;
  for (std::size_t i = 0; i < stage.fractions.size(); ++i) {
    const auto [row, is_new] = rows.try_emplace(heat.nodes[i]);
    if (is_new) {
      order.push_back(heat.nodes[i]);
    }
    row->second += cell_html(heat.ranks[i], stage.fractions[i]);
  }
  std::string text =
      fmt::format("<div class=\"scroll\"><table class=\"ranks\"><caption>{}</caption><tbody>\n",
                  html_words(printable(stage.stage)));
  for (const std::string& node : order) {
    text += fmt::format("<tr><th scope=\"row\">{}</th>{}</tr>\n",
                        html_words(node.empty() ? "n/a" : node), rows[node]);
  }
  return text + "</tbody></table></div>\n";
}

}  // namespace

std::string fleet_page(const FleetReport& report, std::size_t top) {
  Document document;
  std::string nav = "<nav aria-label=\"Sections\">";
  const auto add = [&](Section section, const char* short_title) {
    nav += fmt::format("<a href=\"#{}\">{}</a> ", section.id, html_words(short_title));
    document.sections.push_back(std::move(section));
  };
  // What the summaries do not hold is listed once, not in a section each.
  Section absent;
  absent.id = "not-here";
  absent.title = "Not available for these ranks";
  for (FleetSection& made : fleet_sections(report, top)) {
    if (made.is_known) {
      add(std::move(made.section), made.short_title);
    } else {
      absent.notes.push_back(fmt::format("{}: {}", made.section.title, made.section.missing));
    }
  }
  if (!absent.notes.empty()) {
    add(absent, absent.title.c_str());
  }
  std::string text = html_text(document);
  text += fmt::format(
      "<section id=\"heat\"><h2>Heat map</h2>\n<p>One row per node, one cell per rank: percent off the "
      "median over ranks, by {}. Shades begin at 3, 10 and 20 % slower, and at 3 and 10 % "
      "faster.</p>\n",
      html_words(report.quantity));
  for (const StageDeviation& stage : report.heat.stages) {
    text += stage_html(report.heat, stage);
  }
  text += "</section>\n";
  const std::string style =
      std::string(web_file("report.css")) + std::string(web_file("fleet.css"));
  const std::string policy = fmt::format(
      "default-src 'none'; style-src {}; base-uri 'none'; form-action 'none'", source_hash(style));
  const std::string title = html_words(fleet_title(report));
  nav += "<a href=\"#heat\">Heat map</a></nav>";
  return filled_page(web_file("comparison.html"), {{"policy", policy},
                                                   {"style", style},
                                                   {"title", title},
                                                   {"kind", "fleet report"},
                                                   {"nav", nav},
                                                   {"core", text}});
}

}  // namespace gpuwhy
