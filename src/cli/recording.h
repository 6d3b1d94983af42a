// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "analysis/analysis.h"
#include "cli/command.h"

namespace llmprof {

// How a recording is read; the options that analyze and kernels share.
struct RecordingOptions {
  std::string gpu;
  std::string pid;
  std::string threads = "2";
  std::vector<std::string> ncu;  // counters to join: analyze only
};
void add_recording_options(Command& command, RecordingOptions& target);

// Loads a recording, through nsys if it is a report, and analyses it with the rules of conf/; a
// kernel summary as far as that goes. Counters are joined where they are given.
Analysis analyze_recording(const std::string& path, const RecordingOptions& options,
                           const System& system, PassTimer* timer = nullptr);

// The ceilings of conf/hardware/gpus.yaml: TFLOP/s and GB/s there, base units here.
std::vector<GpuTableRow> gpu_table();

// Leaves only one stage's rows in what is shown. Throws kUsage when there is no such stage.
void keep_stage(const std::string& stage, Analysis& analysis);

// A whole number of at least 1 given as an option. Throws kUsage.
std::size_t positive_number(const std::string& option, const std::string& text);

}  // namespace llmprof
