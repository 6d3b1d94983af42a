// SPDX-License-Identifier: Apache-2.0
//
// llmprof kernels: the kernel table alone, for people and for scripts.
#include <memory>

#include "base/exit_code.h"
#include "base/json.h"
#include "cli/recording_options.h"
#include "ingest/ingest.h"
#include "report/metrics.h"
#include "report/sections.h"
#include "session/recording.h"

namespace llmprof {
namespace {

struct KernelsOptions {
  std::string file;
  std::string stage;
  std::string top = "20";
  std::string format = "md";
  RecordingOptions recording;
};

int run_kernels(const KernelsOptions& asked, Context& context) {
  const std::size_t top = asked.top == "all" ? SIZE_MAX : positive_number("--top", asked.top);
  Analysis analysis = profile_recording(asked.file, asked.recording, context.system).analysis;
  if (!asked.stage.empty()) {
    keep_stage(asked.stage, analysis);
  }
  if (asked.format == "csv") {
    context.console.out(kernels_csv(top_n_kernels(analysis.kernels, top)));
  } else {
    SectionOptions options;
    options.top = top;
    context.console.out(markdown_text(kernels_document(metrics_of(analysis), options)));
  }
  return kExitOk;
}

}  // namespace

Command kernels_command() {
  auto asked = std::make_shared<KernelsOptions>();
  Command command;
  command.name = "kernels";
  command.summary = "Print the kernel table of a recording";
  command.options = {
      {"FILE", "", recording_kinds(false) + ", or a bundle", &asked->file, {}, nullptr, true},
      {"--stage", "NAME", "Only kernels launched in this stage", &asked->stage},
      {"--top", "N", "Rows to print (20), or all", &asked->top},
      {"--format", "FORMAT", "md or csv; csv has whole names", &asked->format, {"md", "csv"}},
  };
  add_recording_options(command, asked->recording);
  command.examples = "  llmprof kernels run.sqlite --top all --format csv\n";
  command.run = [asked](Context& context) { return run_kernels(*asked, context); };
  return command;
}

}  // namespace llmprof
