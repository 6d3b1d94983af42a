// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <filesystem>
#include <string_view>
#include <vector>

#include "capture/processes.h"
#include "capture/system.h"

namespace gpuwhy {

// What nsys says when it gives up on the agent that it started.
inline constexpr const char* kAgentFailed = "Agent launcher failed";

// On a busy machine nsys now and then loses the agent it just started, before it starts the
// program, and exits with 1. True where `said` is all that it prints then.
bool is_agent_failure(std::string_view said);
// The same of a line among others: only words that no other program prints.
bool is_line_of_agent_failure(std::string_view line);

// What a killed nsys left behind. While it is there, captures may end in kAgentFailed though nsys
// lists no session.
struct NsysLeftovers {
  // Shared memory in /dev/shm, sorted: files of this user, unchanged for a minute, that are
  // provably of no use. A hung agent waits for them, or no process has them open or mapped while no
  // other process of nsys runs.
  std::vector<std::filesystem::path> files;
  // Agents of this user that wait for shared memory which nobody will finish. Each holds the lock
  // of nsys' sessions, so every later agent waits for it.
  std::vector<RunningProcess> hung_agents;

  bool empty() const { return files.empty() && hung_agents.empty(); }
};

NsysLeftovers find_nsys_leftovers(const System& system, std::chrono::system_clock::time_point now =
                                                            std::chrono::system_clock::now());

// Removes the files, ends the agents, and returns those that are gone.
NsysLeftovers remove_nsys_leftovers(
    const System& system,
    std::chrono::system_clock::time_point now = std::chrono::system_clock::now());

}  // namespace gpuwhy
