// SPDX-License-Identifier: Apache-2.0
//
// HTML page of a comparison, for someone stopped by a gate or interested in the effect of a change.
//
// The verdict comes first, in words, then a tile for each metric that decides, then the attribution
// of the difference. There are no scripts, and the policy allows none: the page opens from a mail,
// in a job's artifacts, and on paper. Bars are drawn by attributes, which a policy on styles does
// not affect.
//
// Omissions are stated where they occur; --format json has every number.
#include <algorithm>

#include <fmt/format.h>

#include "report/comparison.h"
#include "report/comparison_parts.h"
#include "report/html_parts.h"
#include "report/section_parts.h"

namespace llmprof {
namespace {

std::string verdict_words(const std::string& verdict, const std::string& sentence) {
  if (verdict == "regress") {
    return "Slower";
  }
  if (verdict == "pass") {
    return sentence.starts_with("faster") ? "Faster" : "No slower";
  }
  return verdict == "invalid" ? "Not comparable" : "Not decided";
}

// The sentence without the word that is already in the heading.
std::string reasons_of(const std::string& sentence) {
  for (const std::string_view said :
       {"slower: ", "faster: ", "not decided: ", "not comparable: "}) {
    if (sentence.starts_with(said)) {
      return sentence.substr(said.size());
    }
  }
  return sentence;
}

std::string metric_words(const std::string& key) {
  if (key == "aggregates.ttft.p50_ns") {
    return "Time to first token, p50";
  }
  return key == "aggregates.tpot.p50_ns" ? "Time per output token, p50" : key;
}

// The large text of a tile: a change only if it is significant.
std::string tile_value(const Json& row, const ReportValue& ratio) {
  const std::string change = text_of(row, "change");
  if (change == "worse" || change == "better") {
    return ratio.value.is_number() ? html_value(ratio) : html_words(change);
  }
  return change == "same" ? "within noise" : change == "unclear" ? "not decided" : "not judged";
}

std::string tile_html(const Json& row, std::size_t place) {
  const std::string key = fmt::format("metrics[{}].", place);
  const auto value = [&](const char* field, Unit unit) {
    return ReportValue{field_of(row, field), unit, key + field, nullptr};
  };
  const ReportValue ratio = value("ratio", Unit::kRatio);
  const std::string change = text_of(row, "change");
  // A change that is not proven gets a neutral tile; its measured ratio moves into the note.
  const bool is_change = change == "worse" || change == "better";
  std::string note;
  if (ratio.value.is_number() && !is_change) {
    note += "measured " + html_value(ratio) + ", ";
  }
  if (field_of(row, "ratio_low").is_number() && field_of(row, "ratio_high").is_number()) {
    note += fmt::format("{} to {}", html_value(value("ratio_low", Unit::kRatio)),
                        html_value(value("ratio_high", Unit::kRatio)));
    note += text_of(row, "method") == "runs" ? "" : " by its " + html_words(text_of(row, "method"));
  } else {
    note += "no interval";
  }
  const std::string reason = text_of(row, "reason");
  return fmt::format(
      "<li class=\"tile {}\"><div class=\"tile-label\">{}</div><div class=\"tile-value\">{}</div>"
      "<div class=\"tile-note\">{}</div><div class=\"tile-note\">{} before, {} now{}</div></li>\n",
      is_change ? change : "even", html_words(metric_words(text_of(row, "key"))),
      tile_value(row, ratio), note, html_value(value("base", metric_unit(row))),
      html_value(value("candidate", metric_unit(row))),
      reason.empty() ? "" : "; " + html_words(reason));
}

// One tile per gated metric, below the verdict.
std::string summary_html(const Json& comparison) {
  const std::string verdict = text_of(comparison, "verdict");
  const std::string sentence = text_of(comparison, "sentence");
  std::string tiles;
  std::size_t place = 0;
  for (const Json& row : rows_of(comparison, "metrics")) {
    tiles += field_of(row, "gated") == Json(true) ? tile_html(row, place) : "";
    ++place;
  }
  return fmt::format(
      "<section id=\"summary\" aria-labelledby=\"summary-title\">"
      "<h2 id=\"summary-title\" class=\"{}\">{}</h2>\n<p class=\"verdict\">{}</p>\n"
      "<p class=\"hint\">Verdict: {}. Runs: {} of the base, {} of the "
      "candidate.</p>\n{}</section>\n",
      html_words(verdict), verdict_words(verdict, sentence), html_words(reasons_of(sentence)),
      html_words(verdict), rows_of(comparison, "base.runs").size(),
      rows_of(comparison, "candidate.runs").size(),
      tiles.empty() ? "" : "<ul class=\"tiles\">" + tiles + "</ul>\n");
}

// The metrics that are not in the table above, behind a click.
std::string other_metrics_html(const Json& comparison) {
  constexpr std::size_t kMost = 500;
  ReportTable table =
      metrics_table(comparison, [](const Json& row) { return !is_told_metric(row); });
  const std::size_t all = table.rows.size();
  if (all == 0) {
    return "";
  }
  table.rows.resize(std::min(all, kMost));
  Section section;
  section.id = "other-metrics";
  section.title = "Metrics that did not change beyond doubt";
  section.tables.push_back(std::move(table));
  if (all > kMost) {
    section.notes.push_back(fmt::format("{} more are in --format json", all - kMost));
  }
  return fmt::format(
      "<details><summary>{} metrics that did not change beyond doubt</summary>\n{}"
      "</details>\n",
      all, html_text({"", {section}}, comparison));
}

bool has_broken_fact(const Json& comparison) {
  const Json& facts = rows_of(comparison, "fingerprint");
  return std::any_of(facts.begin(), facts.end(),
                     [](const Json& row) { return field_of(row, "breaks") == Json(true); });
}

std::string core_html(const Json& comparison, std::size_t top) {
  Document first;
  Document last;
  // A broken fact comes first: nothing else matters then.
  const bool is_broken = has_broken_fact(comparison);
  (is_broken ? first : last).sections.push_back(fingerprint_section(comparison));
  const bool has_kernels = !rows_of(comparison, "kernels").empty();
  if (has_kernels) {
    first.sections.push_back(families_section(comparison));
  }
  if (has_operators(comparison)) {
    first.sections.push_back(operator_moves_section(comparison, top));
  }
  if (has_kernels) {
    first.sections.push_back(buckets_section(comparison));
    first.sections.push_back(moved_section(comparison, top));
  }
  Section metrics = metrics_section(comparison, false);
  metrics.notes.erase(metrics.notes.begin(), metrics.notes.end() - 1);  // they stand below
  first.sections.push_back(std::move(metrics));
  last.sections.push_back(runs_section(comparison));
  return summary_html(comparison) + html_text(first, comparison) + other_metrics_html(comparison) +
         html_text(last, comparison);
}

}  // namespace

std::string comparison_page(const Json& comparison, std::size_t top) {
  const std::string core = core_html(comparison, top);
  const std::string style =
      std::string(web_file("report.css")) + std::string(web_file("comparison.css"));
  const std::string policy = fmt::format(
      "default-src 'none'; style-src {}; base-uri 'none'; form-action 'none'", source_hash(style));
  const std::string title =
      verdict_words(text_of(comparison, "verdict"), text_of(comparison, "sentence"));
  return filled_page(web_file("comparison.html"),
                     {{"policy", policy}, {"style", style}, {"title", title}, {"core", core}});
}

}  // namespace llmprof
