// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "capture/system.h"

namespace gpuwhy {

// A process as described in /proc.
struct RunningProcess {
  int pid = 0;
  int parent = 0;
  std::string name;        // cut at 15 characters
  std::string start_time;  // in ticks since boot: unique together with the pid
  bool is_zombie = false;

  std::string text() const;  // "name (pid 123)"
};

// All processes of the machine, sorted by pid. Those that end meanwhile are omitted.
std::vector<RunningProcess> all_processes(const System& system);

// One process; nullopt if it does not exist.
std::optional<RunningProcess> find_process(const System& system, int pid);

// Whether it belongs to nsys or ncu.
bool is_profiler(const RunningProcess& process);

// Every live descendant of this process, including orphans handed to it.
std::vector<RunningProcess> descendants();

}  // namespace gpuwhy
