// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "cli/command.h"
#include "export/event_walk.h"
#include "session/recording.h"

namespace gpuwhy {

struct ExportRequest {
  std::vector<std::string> files;  // one recording, or those of one job
  std::string format = "pftrace";
  std::string out;  // empty: the format's own name, in the working directory
  std::uint64_t budget_bytes = kTraceBudgetBytes;
  RecordingOptions recording;
};

// Loads, analyses and writes; prints the path, and on standard error what was left out.
int run_export(const ExportRequest& options, Context& context);

}  // namespace gpuwhy
