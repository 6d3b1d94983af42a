// SPDX-License-Identifier: Apache-2.0
//
// gpuwhy ranges: NVTX ranges and the kernels launched inside them.
#include "analysis/ranges.h"

#include <memory>

#include "base/exit_code.h"
#include "cli/command.h"
#include "cli/json_output.h"
#include "cli/recording_options.h"
#include "ingest/ingest.h"
#include "report/metrics.h"
#include "report/sections.h"
#include "session/recording.h"

namespace gpuwhy {
namespace {

struct RangesOptions {
  std::string file;
  RowLimit top{20};
  std::string format = "text";
  bool is_json = false;
  JsonPages pages;
  RecordingOptions recording;
};

int run_ranges(const RangesOptions& options, Context& context) {
  check_pages(options.pages, options.is_json);
  Profile profile = profile_recording(options.file, options.recording, context.system);
  say_how_read(profile, context.console);
  std::vector<RangeTotal>& ranges = profile.analysis.ranges;
  if (options.format == "csv" || options.is_json) {
    ranges.resize(std::min(ranges.size(), options.top.rows));
  }
  if (options.format == "csv") {
    context.console.out(ranges_csv(ranges));
    return kExitOk;
  }
  if (options.is_json) {
    context.console.out(
        paged(metrics_part_text(metrics_of(profile.analysis), "ranges", "ranges"), options.pages));
    return kExitOk;
  }
  SectionOptions shown;
  shown.top = options.top.rows;
  Metrics metrics = metrics_of(profile.analysis);
  // All of them: a report has the first hundred. Steps and layers that are numbered are one row.
  metrics.ranges = fold_numbered(ranges);
  context.console.out(
      terminal_text(section_document(metrics, {"ranges"}, shown), context.console.form()));
  return kExitOk;
}

}  // namespace

Command ranges_command() {
  auto options = std::make_shared<RangesOptions>();
  Command command;
  command.name = "ranges";
  command.summary =
      "Print the NVTX ranges of a recording: CPU time, and the kernels launched inside";
  command.options = {
      required({"FILE", "", recording_kinds(false) + ", or a bundle", &options->file}),
      {"--top", "N", "Rows to print, or all", &options->top},
      one_of({"text", "csv"},
             {"--format", "FORMAT", "text or csv; csv has whole names", &options->format}),
      {"--json", "", "A document with the rows, `ranges` as in metrics.json", &options->is_json},
  };
  add_page_options(command, options->pages);
  add_recording_options(command, options->recording);
  command.run = [options](Context& context) { return run_ranges(*options, context); };
  return command;
}

}  // namespace gpuwhy
