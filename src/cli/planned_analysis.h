// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "analysis/memory_plan.h"
#include "capture/system.h"
#include "cli/command.h"
#include "trace/diagnostics.h"

namespace llmprof {

class InputFile;

// A size given as an option: 4GiB, 500MB, 1048576. Throws kUsage.
std::uint64_t size_option(const std::string& option, const std::string& text);

// llmprof analyze --plan: what reading these files will take, from their first bytes alone.
struct PlanRequest {
  std::vector<std::string> files;
  std::string out;           // empty: nothing is written
  std::string trace_budget;  // as given
  std::string memory_limit;  // as given; empty: what is free here
  bool json = false;
};
// kExitOk if all fit, else kExitEnvironment.
int print_plans(const PlanRequest& asked, Context& context);

// Holds the plan for a recording against a limit. Nothing: all of it fits; a diagnostic: it fits
// with coarse_picture(), and that is what to say of it. Throws kEnvironment where even that does
// not.
std::optional<Diagnostic> fit_into_memory(const InputFile& recording, std::uint64_t limit_bytes,
                                          const PlannedOutput& output);

// One line for doctor: the largest recording that can be analysed here.
std::string largest_recording(const System& system);

}  // namespace llmprof
