// SPDX-License-Identifier: Apache-2.0
//
// Output formats of a comparison for continuous integration: summary pages, metrics reports
// and test reports.
#include <fmt/format.h>

#include "base/text.h"
#include "report/comparison/ci.h"
#include "report/comparison/comparison.h"
#include "report/comparison/comparison_parts.h"
#include "report/document/html_parts.h"

namespace gpuwhy {
namespace {

// One case of a JUnit report; `outcome` is failure, error, skipped or, where it passed, empty.
std::string test_case(const std::string& name, std::string_view outcome,
                      const std::string& sentence) {
  const std::string head =
      fmt::format("    <testcase classname=\"gpuwhy.gate\" name=\"{}\"", html_words(name));
  return outcome.empty() ? head + "/>\n"
                         : fmt::format("{}>\n      <{} message=\"{}\"/>\n    </testcase>\n", head,
                                       outcome, html_words(sentence));
}

struct CaseCounts {
  int cases = 0;
  int failures = 0;
  int errors = 0;
  int skipped = 0;
};

std::string junit_report(const std::string& cases, const CaseCounts& counts,
                         const std::string& sentence) {
  const std::string head =
      fmt::format("name=\"gpuwhy gate\" tests=\"{}\" failures=\"{}\" errors=\"{}\" skipped=\"{}\"",
                  counts.cases, counts.failures, counts.errors, counts.skipped);
  return fmt::format(
      "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites {0}>\n  <testsuite {0}>\n{1}"
      "    <system-out>{2}</system-out>\n  </testsuite>\n</testsuites>\n",
      head, cases, html_words(sentence));
}

// "10.0 ms -> 10.5 ms (+5.0 %): WORSE".
std::string metric_sentence(const MetricChange& row) {
  const auto value = [&](const std::optional<double>& number) {
    return number ? shown({*number, metric_unit(row), ""}) : "n/a";
  };
  const std::string change = row.ratio ? fmt::format(" ({})", change_text(row)) : "";
  const std::string sides =
      row.base ? fmt::format("{} -> {}{}", value(row.base), value(row.candidate), change)
               : value(row.candidate);
  return fmt::format("{}: {}", sides, metric_judgement(row));
}

// A command of GitHub's runner, which reads both streams of a step.
std::string annotation(const char* level, const std::string& text) {
  std::string escaped;
  for (const char c : text) {
    escaped += c == '%' ? "%25" : c == '\r' ? "%0D" : c == '\n' ? "%0A" : std::string(1, c);
  }
  return fmt::format("::{} title=gpuwhy gate::{}\n", level, escaped);
}

}  // namespace

std::string github_comparison(const Comparison& comparison) {
  constexpr std::size_t kRows = 20;  // a page has 1 MiB at most, and nobody reads more
  return markdown_text(comparison_document(comparison, kRows, false));
}

std::string github_annotation(const Comparison& comparison) {
  return comparison.verdict == Decision::kPass
             ? ""
             : annotation(comparison.verdict == Decision::kInconclusive ? "warning" : "error",
                          verdict_line(comparison));
}

std::string github_error(const std::string& error) {
  return annotation("error", error);
}

std::string failure_markdown(const std::string& error, const std::string& hint) {
  Section section;
  section.id = "summary";
  section.title = "Comparison";
  section.paragraphs.push_back("Nothing was judged: " + printable(error));
  if (!hint.empty()) {
    section.paragraphs.push_back("Hint: " + printable(hint));
  }
  return markdown_text({"", {section}});
}

std::string junit_failure(const std::string& error) {
  return junit_report(test_case("the runs can be judged", "error", error), {1, 0, 1, 0}, error);
}

std::string gitlab_comparison(const Comparison& comparison) {
  std::vector<MetricsReportRow> rows;
  for (const MetricChange& row : comparison.metrics) {
    if (row.is_gated && row.candidate) {
      rows.push_back({dashboard_name(row.key), measure_name(row), *row.candidate});
    }
  }
  return metrics_report(rows);
}

std::string junit_comparison(const Comparison& comparison) {
  std::string cases;
  int num_failures = 0;
  int num_skipped = 0;
  const bool is_invalid = comparison.verdict == Decision::kInvalid;
  cases += test_case("the runs can be judged", is_invalid ? "error" : "",
                     is_invalid ? comparison.sentence() : "");
  int num_cases = 1;
  for (const MetricChange& row : comparison.metrics) {
    if (!row.is_gated) {
      continue;
    }
    ++num_cases;
    const bool is_failure = row.change == Change::kWorse;
    const bool is_skipped = row.change == Change::kUnclear || row.change == Change::kNotJudged;
    num_failures += is_failure ? 1 : 0;
    num_skipped += is_skipped ? 1 : 0;
    cases += test_case(metric_label(row.key),
                       is_failure   ? "failure"
                       : is_skipped ? "skipped"
                                    : "",
                       metric_sentence(row));
  }
  return junit_report(cases, {num_cases, num_failures, is_invalid ? 1 : 0, num_skipped},
                      verdict_line(comparison));
}

}  // namespace gpuwhy
