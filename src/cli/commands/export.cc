// SPDX-License-Identifier: Apache-2.0
//
// gpuwhy export: a recording for the tools people already use.
#include <memory>

#include <fmt/format.h>

#include "analysis/profile.h"
#include "base/exit_code.h"
#include "base/units.h"
#include "cli/recording_options.h"
#include "export/event_walk.h"
#include "ingest/ingest.h"
#include "session/reading/recording.h"
#include "session/writing/trace_files.h"

namespace gpuwhy {
namespace {

struct ExportRequest {
  std::vector<std::string> files;  // one recording, or those of one job
  std::string format = "pftrace";
  std::string out;  // empty: the format's own name, in the working directory
  std::uint64_t budget_bytes = kTraceBudgetBytes;
  RecordingOptions recording;
};

// Loads, analyses and writes; prints the path, and on standard error what was left out.
int run_export(const ExportRequest& options, Context& context) {
  ProfileWants wants;
  wants.has_export = true;
  const Profile profile =
      profile_recordings(options.files, options.recording, context.system, wants);
  say_how_read(profile, context.console);
  const ExportResult written =
      write_export(options.format, options.out, options.budget_bytes, profile);
  for (const Diagnostic& note : written.notes) {
    context.console.err(fmt::format("gpuwhy: {}\n", note.sentence));
  }
  if (written.trace) {
    for (const Diagnostic& diagnostic : written.trace->left_out) {
      context.console.err(fmt::format("gpuwhy: {}\n", diagnostic.sentence));
    }
    context.console.err(
        fmt::format("{} slices, {}, {:.1f} bytes per slice\n", written.trace->num_slices,
                    format_bytes(written.trace->size_bytes),
                    fraction_of(static_cast<std::int64_t>(written.trace->size_bytes),
                                written.trace->num_slices)));
    context.console.err("open it at https://ui.perfetto.dev\n");
  }
  context.console.out(written.file.string() + "\n");
  return kExitOk;
}

}  // namespace

Command export_command() {
  auto options = std::make_shared<ExportRequest>();
  Command command =
      command_of("export", "Convert a recording for Perfetto, pprof, Chrome or data tools", options,
                 run_export);
  command.options = {
      required({"FILE", "", recording_kinds(false) + ", or a bundle; several: ranks of one job",
                &options->files}),
      {"--format", "FORMAT",
       "pftrace or perfetto (ui.perfetto.dev), pprof (go tool pprof), chrome (JSON, "
       "chrome://tracing) or parquet (DuckDB, polars, pandas: a folder of tables)",
       &options->format, export_formats()},
      {"-o,--out", "FILE",
       "Write there; else trace.pftrace, kernels.pb.gz, trace.json or the folder tables",
       &options->out},
      {"--trace-budget", "BYTES",
       "Maximum size of the trace; beyond it, API calls are left out first",
       &options->budget_bytes},
      ncu_option(options->recording.ncu),
  };
  add_recording_options(command, options->recording);
  command.examples =
      "  gpuwhy export run.sqlite\n"
      "  gpuwhy export gpuwhy-runs/20261115-101500 --format pprof --out kernels.pb.gz\n"
      "  gpuwhy export run.sqlite --format parquet --out tables\n";
  return command;
}

}  // namespace gpuwhy
