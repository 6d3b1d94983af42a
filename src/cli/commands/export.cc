// SPDX-License-Identifier: Apache-2.0
//
// llmprof export: a recording for the tools people already use.
#include "cli/commands/export.h"

#include <memory>

#include <fmt/format.h>

#include "base/exit_code.h"
#include "base/units.h"
#include "cli/recording_options.h"
#include "ingest/ingest.h"
#include "session/trace_files.h"

namespace llmprof {

int run_export(const ExportRequest& options, Context& context) {
  const std::uint64_t budget_bytes = trace_budget_of(options.budget);
  ProfileWants wants;
  wants.has_export = true;
  const Profile profile = profile_recording(options.file, options.recording, context.system, wants);
  const ExportResult written = write_export(options.format, options.out, budget_bytes, profile);
  if (written.trace) {
    for (const Diagnostic& diagnostic : written.trace->left_out) {
      context.console.err(fmt::format("llmprof: {}\n", diagnostic.sentence));
    }
    context.console.err(
        fmt::format("{} slices, {}, {:.1f} bytes a slice\n", written.trace->num_slices,
                    format_bytes(written.trace->size_bytes),
                    fraction_of(static_cast<std::int64_t>(written.trace->size_bytes),
                                written.trace->num_slices)));
  }
  context.console.out(written.file.string() + "\n");
  return kExitOk;
}

Command export_command() {
  auto asked = std::make_shared<ExportRequest>();
  asked->format = "pftrace";
  Command command;
  command.name = "export";
  command.summary = "Write a recording as a file of Perfetto, pprof or Chrome";
  command.options = {
      {"FILE", "", recording_kinds(false) + ", or a bundle", &asked->file, {}, nullptr, true},
      {"--format", "FORMAT",
       "pftrace (ui.perfetto.dev), pprof (go tool pprof) or chrome (JSON, chrome://tracing)",
       &asked->format, export_formats()},
      {"--out", "FILE", "Write there; else trace.pftrace, kernels.pb.gz or trace.json",
       &asked->out},
      {"--trace-budget", "BYTES",
       "The most a trace may take (200000000); beyond, API calls are left out first",
       &asked->budget},
      {"--ncu", "FILE...",
       "Counters to join, one or more files: .ncu-rep, or what ncu --csv printed",
       &asked->recording.ncu},
  };
  add_recording_options(command, asked->recording);
  command.examples =
      "  llmprof export run.sqlite\n"
      "  llmprof export llmprof-runs/20261115-101500 --format pprof --out kernels.pb.gz\n";
  command.run = [asked](Context& context) { return run_export(*asked, context); };
  return command;
}

}  // namespace llmprof
