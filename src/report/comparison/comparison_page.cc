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
#include <cmath>

#include <fmt/format.h>

#include "base/cut_name.h"
#include "base/units.h"
#include "report/comparison/comparison.h"
#include "report/comparison/comparison_parts.h"
#include "report/document/html_parts.h"
#include "report/document/section_parts.h"
#include "report/words/key_words.h"

namespace gpuwhy {
namespace {

std::string verdict_words(const Comparison& comparison) {
  const bool has_base = !comparison.base.empty();
  switch (comparison.verdict) {
    case Decision::kRegress:
      return comparison.outcome == "slower" ? "Slower" : "Outside its limits";
    case Decision::kPass:
      return comparison.outcome == "faster" ? "Faster"
             : has_base                     ? "No slower"
                                            : "Within its limits";
    case Decision::kInvalid:
      return has_failed_run(comparison) ? "A run failed"
             : has_base                 ? "Not comparable"
                                        : "Not judged";
    case Decision::kInconclusive:
      break;
  }
  return "Not decided";
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
        row.cells[i] = {label_words(*text), CellFormat::kText, row.cells[i].key};
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
  if (row.change != Change::kSame) {
    return row.change == Change::kUnclear ? "not decided" : "not judged";
  }
  return small_change_words(row).tile;
}

std::string tile_html(const MetricChange& row, std::size_t place) {
  const auto value = [&](const char* field, const std::optional<double>& number, CellFormat unit) {
    return ReportValue{cell_of(number), unit, fmt::format("metrics[{}].{}", place, field)};
  };
  const ReportValue ratio = value("ratio", row.ratio, CellFormat::kRatio);
  std::string note;
  if (row.ratio && !is_change(row)) {
    note += "measured " + html_value(ratio) + ", ";
  }
  if (!row.base) {
    note += html_words(limit_text(row));
  } else if (row.ratio_low && row.ratio_high) {
    note +=
        fmt::format("{} to {}", html_value(value("ratio_low", row.ratio_low, CellFormat::kRatio)),
                    html_value(value("ratio_high", row.ratio_high, CellFormat::kRatio)));
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

// The verdict for a reader who knows neither metrics nor tests: what became of the first one that
// decides, and whether that may be chance. Empty where nothing was measured on both sides.
std::string plain_words(const Comparison& comparison) {
  const auto row = std::ranges::find_if(comparison.metrics, [](const MetricChange& one) {
    return one.is_gated && one.base && one.candidate && one.ratio && *one.base > 0;
  });
  if (row == comparison.metrics.end() || comparison.verdict == Decision::kInvalid) {
    return "";
  }
  const auto text = [&](double value) { return shown({value, metric_unit(*row), ""}); };
  const bool is_more = *row->ratio > 1;
  std::string label = with_capital(label_words(row->key));
  const double change = std::abs(*row->ratio - 1);
  // A report gives the time of a step on the GPU, which is another.
  if (const std::size_t place = label.find("(median)");
      place != std::string::npos && row->key.ends_with("].host_median_ns")) {
    label.replace(place, 8, "(median length on the CPU)");
  }
  const std::string moved =
      fmt::format("{} was {} before and is {} now, {} {}.", label, text(*row->base),
                  text(*row->candidate), format_fraction(change), is_more ? "more" : "less");
  const bool is_one_run = comparison.base.size() == 1 && comparison.candidate.size() == 1;
  switch (row->change) {
    case Change::kWorse:
      return moved + (row->broken_limit ? " That is outside its limit."
                                        : " That is a change for the worse, beyond chance.");
    case Change::kBetter:
      return moved + " That is a change for the better, beyond chance.";
    case Change::kSame:
      return moved + " " + small_change_words(*row).sentence;
    default:
      return moved + (is_one_run
                          ? " Whether that is more than chance is not known: there is one run "
                            "of each. Repeat both."
                          : " Whether that is more than chance, these runs do not tell.");
  }
}

std::string summary_html(const Comparison& comparison) {
  const char* verdict = decision_name(comparison.verdict);
  std::string tiles;
  for (std::size_t i = 0; i < comparison.metrics.size(); ++i) {
    tiles += comparison.metrics[i].is_gated ? tile_html(comparison.metrics[i], i) : "";
  }
  std::string moved;
  for (const std::string& sentence : told_sentences(comparison)) {
    moved += "<p>" + html_words(sentence) + "</p>\n";
  }
  const std::string plain = plain_words(comparison);
  return fmt::format(
      "<section id=\"summary\" aria-labelledby=\"summary-title\">"
      "<h2 id=\"summary-title\" class=\"{}\">{}</h2>\n{}<p{}>{}</p>\n"
      "{}<p>{}</p>\n<p class=\"hint\">Verdict: {}. {}</p>\n{}</section>\n",
      verdict, verdict_words(comparison),
      plain.empty() ? "" : "<p class=\"verdict\">" + html_words(plain) + "</p>\n",
      plain.empty() ? " class=\"verdict\"" : "", html_words(measured_change(comparison)), moved,
      html_words(comparison.reasons), verdict, html_words(runs_sentence(comparison)),
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
  section.title = "Metrics without a change that matters";
  section.tables.push_back(std::move(table));
  if (all > kMost) {
    section.notes.push_back(fmt::format("{} more are in --format json", all - kMost));
  }
  return fmt::format(
      "<details><summary>{} metrics without a change that matters</summary>\n{}"
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
    first.sections.back().notes.emplace_back(
        "Times of a stage are those of all its instances together, not of one.");
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

std::string whole_page(const std::string& title, const std::string& core) {
  const std::string style =
      std::string(web_file("report.css")) + std::string(web_file("comparison.css"));
  const std::string policy = fmt::format(
      "default-src 'none'; style-src {}; base-uri 'none'; form-action 'none'", source_hash(style));
  return filled_page(web_file("comparison.html"), {{"policy", policy},
                                                   {"style", style},
                                                   {"title", title},
                                                   {"kind", "comparison"},
                                                   {"core", core}});
}

}  // namespace

std::string comparison_page(const Comparison& comparison, std::size_t top) {
  std::string title = verdict_words(comparison);
  if (!comparison.candidate.empty()) {
    const std::string against =
        comparison.base.empty() ? "" : " against " + html_words(side_name(comparison.base));
    title = fmt::format("{}{}: {}", html_words(side_name(comparison.candidate)), against, title);
  }
  return whole_page(title, core_html(comparison, top));
}

std::string failure_page(const std::string& error, const std::string& hint) {
  return whole_page("Nothing was judged",
                    fmt::format("<section id=\"summary\"><h2>Nothing was judged</h2>\n<p>{}</p>\n{}"
                                "</section>\n",
                                html_words(error),
                                hint.empty() ? "" : "<p>Hint: " + html_words(hint) + "</p>\n"));
}

}  // namespace gpuwhy
