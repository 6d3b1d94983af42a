// SPDX-License-Identifier: Apache-2.0
//
// gpuwhy kernels: the kernel table alone, for people and for scripts.
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

struct KernelsOptions {
  std::string file;
  std::string stage;
  RowLimit top{20};
  std::string format = "terminal";
  bool is_json = false;
  JsonPages pages;
  RecordingOptions recording;
};

int run_kernels(const KernelsOptions& options, Context& context) {
  check_pages(options.pages, options.is_json);
  Profile profile = profile_recording(options.file, options.recording, context.system);
  const auto phase = options.recording.window.is_empty()
                         ? window_of_phase(row_name(options.stage), profile.analysis)
                         : std::nullopt;
  if (phase) {
    RecordingOptions part = options.recording;
    part.window = *phase;
    profile = profile_recording(options.file, part, context.system);
  }
  say_how_read(profile, context.console);
  Analysis& analysis = profile.analysis;
  if (!options.stage.empty() && !phase) {
    keep_stage(row_name(options.stage), analysis);
  }
  if (options.is_json) {
    analysis.kernels = top_n_kernels(analysis.kernels, options.top.rows);
    context.console.out(
        paged(metrics_part_text(metrics_of(analysis), "kernels", "kernels"), options.pages));
  } else if (options.format == "csv") {
    context.console.out(kernels_csv(top_n_kernels(analysis.kernels, options.top.rows)));
  } else {
    SectionOptions shown;
    shown.top = options.top.rows;
    shown.is_terminal = options.format == "terminal";
    const Metrics metrics = metrics_of(analysis);
    context.console.out(
        shown.is_terminal
            ? terminal_text(section_document(metrics, {"kernels"}, shown), context.console.form())
            : markdown_text(kernels_document(metrics, shown)));
  }
  return kExitOk;
}

}  // namespace

Command kernels_command() {
  auto options = std::make_shared<KernelsOptions>();
  Command command;
  command.name = "kernels";
  command.aliases = {"stats"};  // as nsys names it
  command.summary = "Print the kernel table of a recording";
  command.options = {
      required({"FILE", "", recording_kinds(false) + ", or a bundle", &options->file}),
      {"--stage", "NAME", "Only kernels launched in this stage; also startup, steady or ending",
       &options->stage},
      {"--top", "N", "Rows to print, or all", &options->top},
      one_of({"terminal", "md", "csv"},
             {"--format", "FORMAT", "terminal, md or csv; csv has whole names", &options->format}),
      {"--json", "", "A document with the rows, `kernels` as in metrics.json", &options->is_json},
  };
  add_page_options(command, options->pages);
  add_recording_options(command, options->recording);
  command.examples =
      "  gpuwhy kernels run.sqlite --top all --format csv\n"
      "  gpuwhy kernels run.sqlite --rules my.yaml --json\n";
  command.run = [options](Context& context) { return run_kernels(*options, context); };
  return command;
}

}  // namespace gpuwhy
