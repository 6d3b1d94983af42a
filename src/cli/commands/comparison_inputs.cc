// SPDX-License-Identifier: Apache-2.0
//
// Options, pages and exit codes of commands that compare.
#include "cli/commands/comparison_inputs.h"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error.h"
#include "base/exit_code.h"
#include "base/file.h"
#include "base/text.h"
#include "cli/recording_options.h"
#include "report/comparison.h"
#include "report/run_summary.h"

namespace llmprof {
namespace {

namespace fs = std::filesystem;

std::string page_of(const Comparison& comparison, const JudgeOptions& options) {
  constexpr std::size_t kLeastRows = 20;  // there is more room than in a terminal
  return comparison_page(comparison, std::max(options.top.rows, kLeastRows));
}

}  // namespace

void add_judge_options(Command& command, JudgeOptions& target) {
  command.add({{"--effect", "PERCENT", "Smallest change that matters", &target.smallest_effect},
               {"--allow", "LIST",
                "Facts that may differ, because they are under test: " +
                    fmt::format("{}", fmt::join(comparable_facts(), ", ")),
                &target.allow},
               {"--top", "N", "Rows per table, or all", &target.top},
               {"--all-metrics", "", "Also metrics that did not change", &target.has_all_metrics}});
  add_part_options(command, target.recording);
  add_mark_options(command, target.recording);
}

CompareOptions compare_options_of(const JudgeOptions& options) {
  CompareOptions compare_options;
  compare_options.smallest_effect = options.smallest_effect;
  const std::vector<std::string> known = comparable_facts();
  for (const std::string_view word : split(options.allow, ',')) {
    const std::string fact(trim(word));
    if (fact.empty()) {
      continue;
    }
    if (std::find(known.begin(), known.end(), fact) == known.end()) {
      throw Error(ErrorKind::kUsage, fmt::format("--allow: there is no fact '{}'", printable(fact)),
                  fmt::format("there are: {}", fmt::join(known, ", ")));
    }
    compare_options.allowed.push_back(fact);
  }
  return compare_options;
}

void add_output_options(Command& command, ComparisonOutput& target) {
  command.add(
      {{"--json", "", "Short for --format json", &target.json},
       one_of({"terminal", "html", "md", "json"},
              {"--format", "FORMAT", "terminal, html (the page, whole), md or json (every number)",
               &target.format}),
       {"-o,--out", "FILE", "Also write the page, one HTML file, there", &target.page}});
  add_page_options(command, target.pages);
}

void write_page(const Comparison& comparison, const JudgeOptions& options,
                const ComparisonOutput& output) {
  if (!output.page.empty()) {
    write_file(output.page, page_of(comparison, options));
  }
}

void print_comparison(const Comparison& comparison, const JudgeOptions& options,
                      const ComparisonOutput& output, Context& context) {
  const bool is_json = output.json || output.format == "json";
  check_pages(output.pages, is_json);
  if (is_json) {
    context.console.out(paged(comparison_json(comparison), output.pages));
  } else if (output.format == "html" && output.page.empty()) {
    context.console.out(page_of(comparison, options));
  } else if (output.format == "html") {
    context.console.out(
        fmt::format("{}: {}\n", verdict_name(comparison.verdict), printable(comparison.sentence)));
  } else {
    const Document document =
        comparison_document(comparison, options.top.rows, options.has_all_metrics);
    context.console.out(output.format == "md" ? markdown_text(document)
                                              : terminal_text(document, context.console.form()));
  }
}

int exit_code_of(const Comparison& comparison) {
  switch (comparison.verdict) {
    case Verdict::kPass:
      return kExitOk;
    case Verdict::kRegress:
      return kExitRegression;
    case Verdict::kInconclusive:
      return kExitInconclusive;
    case Verdict::kInvalid:
      break;
  }
  return has_failed_run(comparison) ? kExitIncomplete : kExitNotComparable;
}

fs::path baseline_file(const std::string& directory, const std::string& name) {
  const bool is_plain = !name.empty() && !name.starts_with('.') && !name.starts_with('-') &&
                        name.find('/') == std::string::npos && printable(name) == name;
  if (!is_plain) {
    throw Error(ErrorKind::kUsage,
                fmt::format("'{}' is not a valid baseline name", printable(name)),
                "a plain word, as main");
  }
  return fs::path(directory) / (name + ".json");
}

}  // namespace llmprof
