// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "capture/system.h"
#include "results/run_facts.h"

namespace gpuwhy {

// Facts that a reader of a bundle needs and that doctor checks. Reading them changes nothing. Those
// of results/run_facts.h are in metrics.json too; names of hosts are not.
struct MachineFacts : Environment {
  std::string hostname;
  std::string gpu_problem;  // why `gpus` is empty or incomplete, in words

  // Whether the driver reserves hardware counters for administrators; nullopt if it does not say.
  std::optional<bool> counters_need_admin;
  bool has_cap_sys_admin = false;
  bool has_cap_perfmon = false;
  std::optional<int> perf_event_paranoid;
};

// Reads the facts without changing anything; nvidia-smi is the only program that is started.
MachineFacts machine_facts(const System& system);

// Memory still available to a program: what the kernel reports, or the container's limit if that is
// less. nullopt if the kernel does not report it.
std::optional<std::uint64_t> available_memory_bytes(const System& system);

// Running processes with one of `names` (as in /proc/<pid>/comm), as "name (pid 123)".
std::vector<std::string> running_processes(const System& system,
                                           const std::vector<std::string>& names);

}  // namespace gpuwhy
