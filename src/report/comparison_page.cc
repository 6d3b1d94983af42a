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
#include "report/key_words.h"
#include "report/section_parts.h"

namespace llmprof {
namespace {

std::string verdict_words(const Comparison& comparison) {
  const bool has_base = !comparison.base.empty();
  switch (comparison.verdict) {
    case Verdict::kRegress:
      return has_base ? "Slower" : "Outside its limits";
    case Verdict::kPass:
      return comparison.sentence.starts_with("faster") ? "Faster"
             : has_base                                ? "No slower"
                                                       : "Within its limits";
    case Verdict::kInvalid:
      return has_base ? "Not comparable" : "Not judged";
    case Verdict::kInconclusive:
      break;
  }
  return "Not decided";
}

// The sentence without the word that is already in the heading.
std::string reasons_of(const std::string& sentence) {
  for (const std::string_view said : {"slower: ", "faster: ", "not decided: ", "not comparable: ",
                                      "not judged: ", "outside its limit: "}) {
    if (sentence.starts_with(said)) {
      return sentence.substr(said.size());
    }
  }
  return sentence;
}

// A key that has no label of its own, in words.
std::string label_words(const std::string& key) {
  const std::string label = metric_label(key);
  return label == key ? key_words(key) : label;
}

// Keys are for budgets; a page is for readers.
void say_in_words(ReportTable& table) {
  for (ReportRow& row : table.rows) {
    for (std::size_t i = 0; i < table.columns.size(); ++i) {
      if (const std::string* text = row.cells[i].text();
          table.columns[i].field == "key" && text != nullptr) {
        row.cells[i] = {label_words(*text), Unit::kText, row.cells[i].key};
      }
    }
  }
}

bool is_change(const MetricChange& row) {
  return row.change == Change::kWorse || row.change == Change::kBetter;
}

// What a tile says in large letters: a change only where it is one.
std::string tile_value(const MetricChange& row, const ReportValue& ratio) {
  if (is_change(row)) {
    return row.ratio ? html_value(ratio) : change_name(row.change);
  }
  return row.change == Change::kSame ? row.is_within_limit ? "within its limit" : "within noise"
         : row.change == Change::kUnclear ? "not decided"
                                          : "not judged";
}

std::string tile_html(const MetricChange& row, std::size_t place) {
  const auto value = [&](const char* field, const std::optional<double>& number, Unit unit) {
    return ReportValue{cell_of(number), unit, fmt::format("metrics[{}].{}", place, field)};
  };
  const ReportValue ratio = value("ratio", row.ratio, Unit::kRatio);
  std::string note;
  if (row.ratio && !is_change(row)) {
    note += "measured " + html_value(ratio) + ", ";
  }
  if (!row.base) {
    note += html_words(limit_text(row));
  } else if (row.ratio_low && row.ratio_high) {
    note += fmt::format("{} to {}", html_value(value("ratio_low", row.ratio_low, Unit::kRatio)),
                        html_value(value("ratio_high", row.ratio_high, Unit::kRatio)));
    note += fmt::format(" ({} interval{})", level_text(row.interval_level.value_or(0)),
                        row.method == "runs" ? "" : " of the " + html_words(row.method));
  } else {
    note += "no interval";
  }
  return fmt::format(
      "<li class=\"tile {}\"><div class=\"tile-label\">{}</div><div class=\"tile-value\">{}</div>"
      "<div class=\"tile-note\">{}</div><div class=\"tile-note\">{}{} now{}</div></li>\n",
      is_change(row) ? change_name(row.change) : "even",
      html_words(with_capital(label_words(row.key))), tile_value(row, ratio), note,
      row.base ? html_value(value("base", row.base, metric_unit(row))) + " before, " : "",
      html_value(value("candidate", row.candidate, metric_unit(row))),
      row.reason.empty() ? "" : "; " + html_words(row.reason));
}

std::string summary_html(const Comparison& comparison) {
  const char* verdict = verdict_name(comparison.verdict);
  std::string tiles;
  for (std::size_t i = 0; i < comparison.metrics.size(); ++i) {
    tiles += comparison.metrics[i].is_gated ? tile_html(comparison.metrics[i], i) : "";
  }
  std::string moved;
  for (const MovedWait& row : comparison.moved_waits) {
    moved += "<p>" + html_words(moved_wait_text(row)) + "</p>\n";
  }
  return fmt::format(
      "<section id=\"summary\" aria-labelledby=\"summary-title\">"
      "<h2 id=\"summary-title\" class=\"{}\">{}</h2>\n<p class=\"verdict\">{}</p>\n"
      "{}<p>{}</p>\n<p class=\"hint\">Verdict: {}. {}</p>\n{}</section>\n",
      verdict, verdict_words(comparison), html_words(measured_change(comparison)), moved,
      html_words(reasons_of(comparison.sentence)), verdict, html_words(runs_sentence(comparison)),
      tiles.empty() ? "" : "<ul class=\"tiles\">" + tiles + "</ul>\n");
}

// What the table above leaves out, behind a click.
std::string other_metrics_html(const Comparison& comparison) {
  constexpr std::size_t kMost = 500;
  ReportTable table =
      metrics_table(comparison, [](const MetricChange& row) { return !is_told_metric(row); });
  const std::size_t all = table.rows.size();
  if (all == 0) {
    return "";
  }
  table.rows.resize(std::min(all, kMost));
  say_in_words(table);
  Section section;
  section.id = "other-metrics";
  section.title = "Metrics without a significant change";
  section.tables.push_back(std::move(table));
  if (all > kMost) {
    section.notes.push_back(fmt::format("{} more are in --format json", all - kMost));
  }
  return fmt::format(
      "<details><summary>{} metrics without a significant change</summary>\n{}"
      "</details>\n",
      all, html_text({"", {section}}));
}

std::string core_html(const Comparison& comparison, std::size_t top) {
  if (comparison.base.empty()) {
    Section limits = limits_section(comparison);
    say_in_words(limits.tables.front());
    return summary_html(comparison) + html_text({"", {limits, runs_section(comparison)}});
  }
  if (has_failed_run(comparison)) {
    return summary_html(comparison) +
           html_text({"", {fingerprint_section(comparison), runs_section(comparison)}});
  }
  Document first;
  Document last;
  // What differs between the sides comes first: without it a reader does not know what was
  // compared.
  (comparison.facts.empty() ? last : first).sections.push_back(fingerprint_section(comparison));
  const bool has_kernels = !comparison.kernels.empty();
  // From the whole to its parts, as in the terminal.
  if (has_kernels) {
    first.sections.push_back(buckets_section(comparison));
    first.sections.push_back(families_section(comparison));
  }
  if (has_model(comparison)) {
    first.sections.push_back(model_moves_section(comparison, top));
  }
  if (has_operators(comparison)) {
    first.sections.push_back(operator_moves_section(comparison, top));
  }
  if (has_kernels) {
    first.sections.push_back(moved_section(comparison, top));
  }
  Section metrics = metrics_section(comparison, false);
  // What the option would show stands below.
  std::erase_if(metrics.notes, [](const std::string& note) {
    return note.find("--all-metrics") != std::string::npos;
  });
  say_in_words(metrics.tables.front());
  first.sections.push_back(std::move(metrics));
  last.sections.push_back(runs_section(comparison));
  return summary_html(comparison) + html_text(first) + other_metrics_html(comparison) +
         html_text(last);
}

// A run by its file, several by the folder they are in.
std::string side_name(const std::vector<std::string>& runs) {
  std::string_view label = runs.front();
  const std::size_t folder = label.find_last_of('/');
  if (runs.size() > 1 && folder != std::string_view::npos && folder > 0) {
    label = label.substr(0, folder);
  }
  return cut_name(std::string(label.substr(label.find_last_of('/') + 1)));
}

}  // namespace

std::string comparison_page(const Comparison& comparison, std::size_t top) {
  const std::string core = core_html(comparison, top);
  const std::string style =
      std::string(web_file("report.css")) + std::string(web_file("comparison.css"));
  const std::string policy = fmt::format(
      "default-src 'none'; style-src {}; base-uri 'none'; form-action 'none'", source_hash(style));
  std::string title = verdict_words(comparison);
  if (!comparison.candidate.empty()) {
    const std::string against =
        comparison.base.empty() ? "" : " against " + html_words(side_name(comparison.base));
    title = fmt::format("{}{}: {}", html_words(side_name(comparison.candidate)), against, title);
  }
  return filled_page(web_file("comparison.html"), {{"policy", policy},
                                                   {"style", style},
                                                   {"title", title},
                                                   {"kind", "comparison"},
                                                   {"core", core}});
}

}  // namespace llmprof
