// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "capture/system.h"

namespace llmprof {

// A process as /proc tells of it.
struct RunningProcess {
  int pid = 0;
  int parent = 0;
  std::string name;        // cut at 15 characters
  std::string start_time;  // in ticks since boot: with the pid it is unique
  bool is_zombie = false;

  std::string text() const;  // "name (pid 123)"
};

// All of the machine, sorted by pid. Those that end meanwhile are left out.
std::vector<RunningProcess> all_processes(const System& system);

// One of them, or nothing.
std::optional<RunningProcess> find_process(const System& system, int pid);

// Every process below this one that lives, also those handed to it because their parents died.
std::vector<RunningProcess> descendants();

}  // namespace llmprof
