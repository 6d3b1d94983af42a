// SPDX-License-Identifier: Apache-2.0
//
// llmprof export: a recording for the tools people already use.
#include <memory>

#include "cli/command.h"
#include "cli/trace_files.h"
#include "ingest/ingest.h"

namespace llmprof {

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
      "  llmprof export tmp/stage2/20261115-101500 --format pprof --out kernels.pb.gz\n";
  command.run = [asked](Context& context) { return run_export(*asked, context); };
  return command;
}

}  // namespace llmprof
