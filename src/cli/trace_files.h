// SPDX-License-Identifier: Apache-2.0
//
// A recording in the files of other tools: what export, report, analyze and run share.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "analysis/analysis.h"
#include "cli/command.h"
#include "cli/recording.h"

namespace llmprof {

struct ExportRequest {
  std::string file;
  std::string format;
  std::string out;     // empty: the format's own name, in the working directory
  std::string budget;  // bytes; empty: the default
  RecordingOptions recording;
};

// "pftrace", ...
const std::vector<std::string>& export_formats();

// Loads, analyses and writes; prints the path, and on standard error what was left out.
int run_export(const ExportRequest& asked, Context& context);

// --trace-budget as it was given; empty: the default. Throws kUsage where it is no size.
std::uint64_t trace_budget_of(const std::string& text);

// What stands beside a report: trace.pftrace where there is a recording, kernels.pb.gz. Returns
// their names; what the budget left out is added to the diagnostics. `budget`: bytes, "0" for no
// trace.pftrace, empty for the default. Throws kUsage where it is no size.
std::vector<std::string> write_trace_files(const std::optional<Trace>& trace, Analysis& analysis,
                                           const std::filesystem::path& directory,
                                           const std::string& budget = {});

}  // namespace llmprof
