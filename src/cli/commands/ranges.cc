// SPDX-License-Identifier: Apache-2.0
//
// llmprof ranges: NVTX ranges and the kernels launched inside them.
#include <memory>

#include <fmt/format.h>

#include "base/exit_code.h"
#include "base/text.h"
#include "base/units.h"
#include "cli/command.h"
#include "cli/recording_options.h"
#include "ingest/ingest.h"
#include "report/metrics.h"
#include "session/recording.h"

namespace llmprof {
namespace {

struct RangesOptions {
  std::string file;
  RowLimit top{20};
  std::string format = "text";
  RecordingOptions recording;
};

int run_ranges(const RangesOptions& options, Context& context) {
  Profile profile = profile_recording(options.file, options.recording, context.system);
  say_how_read(profile, context.console);
  std::vector<RangeTotal>& ranges = profile.analysis.ranges;
  ranges.resize(std::min(ranges.size(), options.top.rows));
  if (options.format == "csv") {
    context.console.out(ranges_csv(ranges));
    return kExitOk;
  }
  Table table{{"kernel time", "kernels", "instances", "range"}, {}};
  for (const RangeTotal& range : ranges) {
    table.rows.push_back({format_duration_ns(range.kernel_ns), std::to_string(range.kernels),
                          std::to_string(range.instances), printable(range.range)});
  }
  context.console.out(table_text(table, context.console.width()));
  return kExitOk;
}

}  // namespace

Command ranges_command() {
  auto options = std::make_shared<RangesOptions>();
  Command command;
  command.name = "ranges";
  command.summary = "Print the NVTX ranges of a recording with the kernels launched inside them";
  command.options = {
      required({"FILE", "", recording_kinds(false) + ", or a bundle", &options->file}),
      {"--top", "N", "Rows to print, or all", &options->top},
      one_of({"text", "csv"},
             {"--format", "FORMAT", "text or csv; csv has whole names", &options->format}),
  };
  add_recording_options(command, options->recording);
  command.run = [options](Context& context) { return run_ranges(*options, context); };
  return command;
}

}  // namespace llmprof
