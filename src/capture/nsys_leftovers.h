// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <filesystem>
#include <vector>

#include "capture/system.h"

namespace llmprof {

// Shared memory that a killed nsys left in /dev/shm. As long as it is there, captures may end in
// "Agent launcher failed" though nsys lists no session. Only what is provably nobody's: files of
// this user, unchanged for a minute, that no process has open or mapped, while no process of nsys
// runs. Sorted.
std::vector<std::filesystem::path> find_nsys_leftovers(
    const System& system,
    std::chrono::system_clock::time_point now = std::chrono::system_clock::now());

// Removes them and returns those that are gone.
std::vector<std::filesystem::path> remove_nsys_leftovers(
    const System& system,
    std::chrono::system_clock::time_point now = std::chrono::system_clock::now());

}  // namespace llmprof
