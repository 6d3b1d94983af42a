// SPDX-License-Identifier: Apache-2.0
//
// gpuwhy report: what is known of a run, in the form somebody needs.
#include <algorithm>
#include <memory>

#include <fmt/format.h>

#include "analysis/profile.h"
#include "analysis/timeline/timeline.h"
#include "base/error.h"
#include "base/exit_code.h"
#include "base/text.h"
#include "cli/json_output.h"
#include "cli/recording_options.h"
#include "report/comparison/ci.h"
#include "report/document/page.h"
#include "report/sections/sections.h"
#include "results/results.h"
#include "session/reading/recording.h"

namespace gpuwhy {
namespace {

struct ReportCommandOptions {
  std::vector<std::string> files;
  std::string format = "terminal";
  std::string sections;
  RowLimit top{10};
  std::string ci;
  bool verbose = false;
  bool quiet = false;
  bool is_json = false;
  JsonPages pages;
  RecordingOptions recording;
};

Document document_for(const ReportCommandOptions& options, const Results& metrics) {
  SectionOptions shown;
  shown.set_top(options.top.rows);
  shown.is_terminal = options.format == "terminal";
  shown.is_verbose = options.verbose;
  if (!options.sections.empty()) {
    std::vector<std::string> ids;
    for (const std::string_view id : split(options.sections, ',')) {
      ids.emplace_back(trim(id));
    }
    return section_document(metrics, ids, shown);
  }
  if (options.quiet && shown.is_terminal) {
    return section_document(metrics, {"summary"}, shown);
  }
  return shown.is_terminal ? terminal_document(metrics, shown) : report_document(metrics, shown);
}

int run_report(const ReportCommandOptions& given, Context& context) {
  ReportCommandOptions options = given;
  if (options.is_json) {
    options.format = "json";
  }
  check_pages(options.pages, options.format == "json");
  const bool is_page = options.format == "html" && options.ci.empty();
  const LoadedMetrics loaded =
      load_metrics(options.files, options.recording, context.system, is_page);
  const Results& metrics = loaded.metrics;
  if (is_page) {
    context.console.out(page_html(metrics, *loaded.json,
                                  loaded.profile ? loaded.profile->timeline : Timeline(), {}));
    return kExitOk;
  }
  if (!options.ci.empty()) {
    // A dashboard would show how fast the program failed.
    const std::vector<BreachRow> breaches = metrics.contract.value_or(std::vector<BreachRow>());
    const auto failed = std::ranges::find_if(breaches, &BreachRow::is_fatal);
    if (failed != breaches.end() && options.ci != "github") {
      context.console.err(fmt::format("{}: no times are given, because the run failed: {}\n",
                                      printable(options.files.front()),
                                      printable(failed->sentence)));
      return kExitIncomplete;
    }
    context.console.out(options.ci == "github"    ? github_summary(metrics)
                        : options.ci == "gitlab"  ? gitlab_metrics(metrics)
                        : options.ci == "bencher" ? bencher_json(metrics)
                                                  : google_benchmark_json(metrics));
    // Times of marks or of the program without a profiler are worth following too.
    const bool is_empty = metrics.capture.kernel_ns == 0 && !metrics.aggregates.ttft.p50_ns &&
                          !metrics.aggregates.tpot.p50_ns && !metrics.aggregates.program_ns;
    if (is_empty && options.ci != "github") {
      context.console.err(fmt::format(
          "{}: no kernel was recorded, so there is no time of kernels to follow; gpuwhy report {} "
          "--section findings says what to do\n",
          printable(options.files.front()), printable(options.files.front())));
      return kExitIncomplete;
    }
    return kExitOk;
  }
  const Document document = document_for(options, metrics);
  if (options.format == "md") {
    context.console.out(markdown_text(document));
  } else if (options.format == "json") {
    context.console.out(paged(document_json(document), options.pages));
  } else if (options.format == "csv") {
    context.console.out(document_csv(document));
  } else {
    context.console.out(terminal_text(document, context.console.form()));
  }
  return kExitOk;
}

}  // namespace

Command report_command() {
  auto options = std::make_shared<ReportCommandOptions>();
  Command command = command_of(
      "report", "Show the report of a bundle or recording, whole or in part", options, run_report);
  command.options = {
      required({"BUNDLE", "", "A bundle, a metrics.json, or a recording; several: ranks of one job",
                &options->files}),
      one_of(
          {"terminal", "html", "md", "json", "csv"},
          {"--format", "FORMAT",
           "terminal, html (the page, whole), md, json (every value with its key) or csv (the tables)",
           &options->format}),
      {"--section", "LIST", "Only these: " + fmt::format("{}", fmt::join(section_ids(), ", ")),
       &options->sections},
      {"--top", "N", "Rows per table, or all", &options->top},
      ci_option(options->ci),
      {"-v,--verbose", "",
       "Also say which rules could not be checked, and why, and what the profiler said",
       &options->verbose},
      quiet_option(options->quiet),
      json_option(options->is_json),
  };
  add_page_options(command, options->pages);
  add_request_options(command, options->recording);
  add_recording_options(command, options->recording);
  command.examples =
      "  gpuwhy report gpuwhy-runs/20261115-101500\n"
      "  gpuwhy report run.sqlite --section findings,ledger --format md\n";
  return command;
}

}  // namespace gpuwhy
