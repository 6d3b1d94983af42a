// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "capture/system.h"

namespace llmprof {

// Every process of a run carries this variable, its value the bundle's absolute path: so what a
// killed run left behind can be found, wherever it went in the process tree.
inline constexpr const char* kRunVariable = "LLMPROF_RUN";

// While a run goes on its bundle holds this file, which says which process is at it.
inline constexpr const char* kRunningFile = "running.json";

// Its contents for this very process; `scratch` is the run's folder for what is not kept.
std::string running_text(const std::string& session, const std::filesystem::path& scratch);

// What runs that were killed have left.
struct Leftovers {
  struct Process {
    int pid = 0;
    std::string name;
    std::filesystem::path bundle;
  };
  std::vector<std::filesystem::path> bundles;  // unfinished, and nobody is at them
  std::vector<Process> processes;              // of runs that nobody is at
  std::vector<std::filesystem::path> running;  // unfinished, and somebody is
  std::vector<std::filesystem::path> scratch;  // folders of those nobody is at
};
Leftovers find_leftovers(const System& system, const std::filesystem::path& artifacts_dir);

}  // namespace llmprof
