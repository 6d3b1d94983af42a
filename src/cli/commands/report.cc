// SPDX-License-Identifier: Apache-2.0
//
// llmprof report: what is known of a run, in the form somebody needs.
#include <algorithm>
#include <memory>

#include <fmt/format.h>

#include "base/error.h"
#include "base/exit_code.h"
#include "base/json.h"
#include "base/text.h"
#include "cli/commands/export.h"
#include "cli/recording_options.h"
#include "report/ci.h"
#include "report/metrics.h"
#include "report/page.h"
#include "report/sections.h"
#include "session/recording.h"
#include "session/trace_files.h"

namespace llmprof {
namespace {

struct ReportCommandOptions {
  std::string file;
  std::string format = "terminal";
  std::string sections;
  std::string top = "10";
  std::string ci;
  bool verbose = false;
  RecordingOptions recording;
};

Document document_for(const ReportCommandOptions& asked, const Metrics& metrics) {
  SectionOptions options;
  options.top = asked.top == "all" ? SIZE_MAX : positive_number("--top", asked.top);
  options.is_terminal = asked.format == "terminal";
  options.is_verbose = asked.verbose;
  if (!asked.sections.empty()) {
    std::vector<std::string> ids;
    for (const std::string_view id : split(asked.sections, ',')) {
      ids.emplace_back(trim(id));
    }
    return section_document(metrics, ids, options);
  }
  return options.is_terminal ? terminal_document(metrics, options)
                             : report_document(metrics, options);
}

int run_report(const ReportCommandOptions& asked, Context& context) {
  if (const auto& known = export_formats(); std::ranges::count(known, asked.format) > 0) {
    return run_export({asked.file, asked.format, "", "", asked.recording}, context);
  }
  const bool is_page = asked.format == "html" && asked.ci.empty();
  const LoadedMetrics loaded = load_metrics(asked.file, asked.recording, context.system, is_page);
  const Metrics& metrics = loaded.metrics;
  if (is_page) {
    context.console.out(page_html(metrics, loaded.json,
                                  loaded.profile ? loaded.profile->timeline : Timeline(), {}));
    return kExitOk;
  }
  if (!asked.ci.empty()) {
    context.console.out(asked.ci == "github"    ? github_summary(metrics)
                        : asked.ci == "bencher" ? to_json_text(bencher_json(metrics))
                                                : to_json_text(google_benchmark_json(metrics)));
    const bool is_empty = metrics.capture.kernel_ns == 0;
    if (is_empty && asked.ci != "github") {
      context.console.err(fmt::format(
          "{}: no kernel was recorded, so there is no time of kernels to follow; llmprof report {} "
          "--section findings says what to do\n",
          printable(asked.file), printable(asked.file)));
      return kExitInconclusive;
    }
    return kExitOk;
  }
  const Document document = document_for(asked, metrics);
  if (asked.format == "md") {
    context.console.out(markdown_text(document));
  } else if (asked.format == "json") {
    context.console.out(to_json_text(document_json(document)));
  } else if (asked.format == "csv") {
    context.console.out(document_csv(document));
  } else {
    context.console.out(terminal_text(document, context.console.width()));
  }
  return kExitOk;
}

}  // namespace

Command report_command() {
  auto asked = std::make_shared<ReportCommandOptions>();
  Command command;
  command.name = "report";
  command.summary = "Show the report of a bundle or recording, whole or in part";
  command.options = {
      {"BUNDLE", "", "A bundle, a metrics.json, or a recording", &asked->file, {}, nullptr, true},
      {"--format",
       "FORMAT",
       "terminal, html (the page, whole), md, json (every value with its key) or csv (the tables); "
       "pftrace, pprof and chrome as llmprof export",
       &asked->format,
       {"terminal", "html", "md", "json", "csv", "pftrace", "pprof", "chrome"}},
      {"--section", "LIST", "Only these: " + fmt::format("{}", fmt::join(section_ids(), ", ")),
       &asked->sections},
      {"--top", "N", "Rows of kernels and operators (10), or all", &asked->top},
      {"--ci",
       "FORM",
       "For continuous integration: github (step summary), bencher or gbench (JSON)",
       &asked->ci,
       {"github", "bencher", "gbench"}},
      {"--verbose", "", "Also say which rules could not be checked, and why", &asked->verbose},
  };
  add_recording_options(command, asked->recording);
  command.examples =
      "  llmprof report llmprof-runs/20261115-101500\n"
      "  llmprof report run.sqlite --section findings,ledger --format md\n";
  command.run = [asked](Context& context) { return run_report(*asked, context); };
  return command;
}

}  // namespace llmprof
