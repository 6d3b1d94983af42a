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
#include "base/text.h"
#include "report/fleet.h"
#include "report/section_parts.h"

namespace llmprof {
namespace {

constexpr std::string_view kHead = R"(<!doctype html>
<html lang="en"><head><meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<style>
body{font:15px/1.5 system-ui,sans-serif;margin:2rem auto;max-width:75rem;padding:0 1rem;color:#1b1b1b;background:#fff}
table{border-collapse:collapse;font-variant-numeric:tabular-nums}
caption{text-align:left;font-weight:600;padding:.3rem 0}
th,td{padding:.15rem .5rem;text-align:left;border-bottom:1px solid #ddd}
.n{text-align:right}.scroll{overflow-x:auto}
.heat td,.heat th{border:1px solid #fff;padding:0 .25rem;min-width:2.2rem;text-align:center;font-size:12px}
.heat th{text-align:right;font-weight:400}
.f2{background:#2166ac;color:#fff}.f1{background:#92c5de}.z{background:#f0f0f0;color:#595959}
.s1{background:#fddbc7}.s2{background:#ef8a62}.s3{background:#b2182b;color:#fff}.x{background:#fff;color:#595959}
dl div{display:flex;gap:1rem}dt{min-width:14rem}
</style>
)";

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

std::string html_escaped(std::string_view text) {
  std::string safe;
  for (const char c : printable(text)) {
    const std::string_view special = "<>&\"'";
    safe += special.find(c) == std::string_view::npos
                ? std::string(1, c)
                : fmt::format("&#{};", static_cast<int>(static_cast<unsigned char>(c)));
  }
  return safe;
}

std::string cell_html(const Json& rank, const Json& fraction) {
  const std::int64_t number = rank.is_number_integer() ? rank.get<std::int64_t>() : 0;
  if (!fraction.is_number()) {
    return fmt::format("<td class=\"x\" title=\"rank {}: n/a\">n/a</td>", number);
  }
  const double off = fraction.get<double>();
  const char* kind = shade(off);
  return fmt::format(
      "<td class=\"{}\" title=\"rank {}: {:+.1f} %\">{}</td>", kind, number, off * 100,
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
      fmt::format("<div class=\"scroll\"><table class=\"heat\"><caption>{}</caption><tbody>\n",
                  html_escaped(text_of(stage, "stage")));
  for (const std::string& node : order) {
    text += fmt::format("<tr><th scope=\"row\">{}</th>{}</tr>\n",
                        html_escaped(node.empty() ? "n/a" : node), rows[node]);
  }
  return text + "</tbody></table></div>\n";
}

}  // namespace

std::string fleet_page(const Json& fleet, std::size_t top) {
  const Document document = fleet_document(fleet, top);
  std::string text = fmt::format("{}<title>llmprof: {}</title></head><body><main><h1>{}</h1>\n",
                                 kHead, html_escaped(document.title), html_escaped(document.title));
  text += html_text(document, &fleet);
  text += fmt::format(
      "<section id=\"heat\"><h2>Heat map</h2>\n<p>A row a node, a cell a rank: percent off the "
      "median over ranks, by {}. Shades begin at 3, 10 and 20 % slower, and at 3 and 10 % "
      "faster.</p>\n",
      html_escaped(text_of(fleet, "quantity")));
  const Json& heat = field_of(fleet, "heat");
  for (const Json& stage : rows_of(heat, "stages")) {
    text += stage_html(heat, stage);
  }
  return text + "</section>\n</main></body></html>\n";
}

}  // namespace llmprof
