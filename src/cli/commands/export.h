// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "cli/command.h"
#include "session/recording.h"

namespace llmprof {

struct ExportRequest {
  std::string file;
  std::string format;
  std::string out;     // empty: the format's own name, in the working directory
  std::string budget;  // bytes; empty: the default
  RecordingOptions recording;
};

// Loads, analyses and writes; prints the path, and on standard error what was left out.
int run_export(const ExportRequest& options, Context& context);

}  // namespace llmprof
