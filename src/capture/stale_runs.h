// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "capture/system.h"

namespace gpuwhy {

// Set in the environment of every process of a run, to the bundle's absolute path, so that
// leftovers of a killed run can be found anywhere in the process tree.
inline constexpr const char* kRunVariable = "GPUWHY_RUN";

// The contents of running.json for this process; `scratch` is the run's temporary folder.
std::string running_text(const std::string& session, const std::filesystem::path& scratch);

// Leftovers of killed runs.
struct Leftovers {
  struct Process {
    int pid = 0;
    std::string name;
    std::filesystem::path bundle;
  };
  std::vector<std::filesystem::path> bundles;  // unfinished, their run is gone
  std::vector<Process> processes;              // of runs that are gone
  std::vector<std::filesystem::path> running;  // of runs still in progress
  std::vector<std::filesystem::path> scratch;  // temporary folders of runs that are gone
};
Leftovers find_leftovers(const System& system, const std::filesystem::path& artifacts_dir);

}  // namespace gpuwhy
