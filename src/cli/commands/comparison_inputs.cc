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
#include "report/comparison/comparison.h"
#include "report/comparison/comparison_parts.h"
#include "report/comparison/run_summary.h"

namespace gpuwhy {
namespace {

namespace fs = std::filesystem;

std::string page_of(const Comparison& comparison, const JudgeOptions& options) {
  constexpr std::size_t kLeastRows = 20;  // there is more room than in a terminal
  return comparison_page(comparison, std::max(options.top.rows, kLeastRows));
}

// The file of --out with an error, so that the file of an earlier run does not stay.
std::string failure_text(const std::string& file, const Error& error, int code) {
  const fs::path ending = fs::path(file).extension();
  return ending == ".json" ? failure_json(error.what(), error.hint(), code)
         : ending == ".md" ? failure_markdown(error.what(), error.hint())
                           : failure_page(error.what(), error.hint());
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
  command.add({{"--gpu-name", "NAME", "The GPU of recordings that do not name theirs",
                &target.recording.gpu_name},
               {"--gpu-hour-price", "PRICE",
                "What one GPU costs per hour, as 2.50 or '2.50 EUR': says what the change is worth",
                &target.gpu_hour_price}});
}

CompareOptions compare_options_of(const JudgeOptions& options) {
  CompareOptions compare_options;
  compare_options.smallest_effect = options.smallest_effect;
  if (const std::optional<GpuPrice> price = gpu_price_of(options.gpu_hour_price)) {
    compare_options.gpu_hour_price = price->per_hour;
    compare_options.price_unit = price->unit;
  }
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
      {json_option(target.json),
       one_of({"terminal", "html", "md", "json"},
              {"--format", "FORMAT", "terminal, html (the page, whole), md or json (every number)",
               &target.format}),
       {"-o,--out", "FILE", "Also write it there: FILE.md, FILE.json, or else one HTML page",
        &target.page}});
  command.add({quiet_option(target.is_quiet)});
  add_page_options(command, target.pages);
}

void write_page(const Comparison& comparison, const JudgeOptions& options,
                const ComparisonOutput& output) {
  if (!output.page.empty()) {
    const fs::path ending = fs::path(output.page).extension();
    write_file(output.page, ending == ".md"
                                ? markdown_text(comparison_document(comparison, options.top.rows,
                                                                    options.has_all_metrics))
                            : ending == ".json" ? comparison_json(comparison)
                                                : page_of(comparison, options));
  }
}

int finish_comparison(const Comparison& comparison, const JudgeOptions& options,
                      const ComparisonOutput& output, int code, Context& context,
                      const std::function<void()>& print) {
  // Files first: a reader of standard output may go away, and end gpuwhy with it. One that cannot
  // be written does not take another with it.
  const auto is_written = [&](const auto& write) {
    try {
      write();
      return true;
    } catch (const Error& error) {
      context.console.err(fmt::format("gpuwhy: {}\n", printable(error.what())));
      return false;
    }
  };
  const bool has_page = is_written([&] { write_page(comparison, options, output); });
  const bool has_junit = is_written([&] {
    if (!output.junit.empty()) {
      write_file(output.junit, junit_comparison(comparison));
    }
  });
  print();
  return code == kExitOk && !(has_page && has_junit) ? kExitFailure : code;
}

void write_failure(const ComparisonOutput& output, const Error& error, Context& context) {
  const int code = exit_code_of(error.kind());
  const auto write = [&](const std::string& file, const std::string& text) {
    try {
      if (!file.empty()) {
        write_file(file, text);
      }
    } catch (const Error& of_file) {
      context.console.err(fmt::format("gpuwhy: {}\n", printable(of_file.what())));
    }
  };
  const std::string said =
      error.hint().empty() ? error.what() : fmt::format("{} ({})", error.what(), error.hint());
  write(output.page, failure_text(output.page, error, code));
  write(output.junit, junit_failure(said));
  if (output.ci == "github") {
    context.console.out(failure_markdown(error.what(), error.hint()));
    context.console.err(github_error(printable(said)));
  } else if (output.json || output.format == "json") {
    context.console.out(failure_json(error.what(), error.hint(), code));
  }
}

int with_failure_files(const ComparisonOutput& output, Context& context,
                       const std::function<int()>& work) {
  try {
    check_output(output);
    return work();
  } catch (const Error& error) {
    write_failure(output, error, context);
    throw;
  }
}

void check_output(const ComparisonOutput& output) {
  std::error_code ignored;
  if (!output.page.empty() && !output.junit.empty() &&
      (fs::path(output.page).lexically_normal() == fs::path(output.junit).lexically_normal() ||
       fs::equivalent(output.page, output.junit, ignored))) {
    throw Error(ErrorKind::kUsage,
                fmt::format("--out and --junit both name {}", printable(output.page)),
                "--out gate.html --junit gate.xml");
  }
  if (!output.ci.empty() && (output.json || output.format != "terminal")) {
    throw Error(ErrorKind::kUsage,
                fmt::format("--ci {} and {} would both be written to standard output", output.ci,
                            output.json ? "--json" : "--format " + output.format),
                "write one to a file: --out gate.json (or .md, .html)");
  }
}

void say_repeated(const std::vector<RepeatedRun>& repeated, Console& console) {
  if (!repeated.empty()) {
    console.err(fmt::format("note: {}\n", repeated_words(repeated)));
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
  } else if (output.format == "html" || (output.is_quiet && output.format == "terminal")) {
    context.console.out(verdict_line(comparison) + "\n");
  } else {
    const Document document =
        comparison_document(comparison, options.top.rows, options.has_all_metrics);
    context.console.out(output.format == "md" ? markdown_text(document)
                                              : terminal_text(document, context.console.form()));
  }
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

}  // namespace gpuwhy
