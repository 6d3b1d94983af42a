// SPDX-License-Identifier: Apache-2.0
//
// llmprof ranges: NVTX ranges and the kernels launched inside them.
#include <memory>

#include <fmt/format.h>

#include "base/exit_code.h"
#include "base/text.h"
#include "base/units.h"
#include "cli/recording_options.h"
#include "ingest/ingest.h"
#include "report/metrics.h"
#include "session/recording.h"

namespace llmprof {
namespace {

struct RangesOptions {
  std::string file;
  std::string top = "20";
  std::string format = "text";
  RecordingOptions recording;
};

int run_ranges(const RangesOptions& asked, Context& context) {
  std::vector<RangeTotal> ranges =
      profile_recording(asked.file, asked.recording, context.system).analysis.ranges;
  if (asked.top != "all") {
    ranges.resize(std::min(ranges.size(), positive_number("--top", asked.top)));
  }
  if (asked.format == "csv") {
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
  auto asked = std::make_shared<RangesOptions>();
  Command command;
  command.name = "ranges";
  command.summary = "Print the NVTX ranges of a recording with the kernels launched inside them";
  command.options = {
      {"FILE", "", recording_kinds(false) + ", or a bundle", &asked->file, {}, nullptr, true},
      {"--top", "N", "Rows to print (20), or all", &asked->top},
      {"--format", "FORMAT", "text or csv; csv has whole names", &asked->format, {"text", "csv"}},
  };
  add_recording_options(command, asked->recording);
  command.run = [asked](Context& context) { return run_ranges(*asked, context); };
  return command;
}

}  // namespace llmprof
