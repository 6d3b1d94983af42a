// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "analysis/memory_plan.h"
#include "capture/system.h"
#include "trace/diagnostics.h"

namespace llmprof {

class InputFile;

// "12,345,678".
std::string with_commas(std::uint64_t number);

// Advice on where a recording can be analyzed that does not fit here.
std::string elsewhere(const MemoryPlan& plan);

// Holds the plan for a recording, in one file or several, against a limit. Nothing: all of it fits;
// a diagnostic: it fits with coarse_picture(), and that is what to say of it. Throws kEnvironment
// where even that does not.
std::optional<Diagnostic> fit_into_memory(const std::vector<InputFile>& files,
                                          std::uint64_t limit_bytes, const PlannedOutput& output);

// One line for doctor: the largest recording that can be analyzed here.
std::string largest_recording(const System& system);

}  // namespace llmprof
