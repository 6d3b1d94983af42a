// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "analysis/analysis.h"
#include "cli/command.h"

namespace llmprof {

// How a recording is read; the options that analyze and kernels share.
struct RecordingOptions {
  std::string gpu;
  std::string pid;
  std::string threads = "2";
};
void add_recording_options(Command& command, RecordingOptions& target);

// The rules of conf/ that tell stages and families.
Rules recording_rules();

// A recording, through nsys if it is a report, out of its bundle if it is one.
Trace load_recording(const std::string& path, const System& system, unsigned num_threads = 2,
                     PassTimer* timer = nullptr);

// Loads a recording, through nsys if it is a report, and analyses it with the rules of conf/.
Analysis analyze_recording(const std::string& path, const RecordingOptions& options,
                           const System& system, PassTimer* timer = nullptr);

// Leaves only one stage's rows in what is shown. Throws kUsage when there is no such stage.
void keep_stage(const std::string& stage, Analysis& analysis);

// A whole number of at least 1 given as an option. Throws kUsage.
std::size_t positive_number(const std::string& option, const std::string& text);

}  // namespace llmprof
