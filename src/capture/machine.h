// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "capture/system.h"

namespace gpuwhy {

// One GPU as nvidia-smi describes it.
struct GpuFacts {
  int index = 0;
  std::string name;
  std::optional<std::uint64_t> memory_bytes;  // unknown if it shares the host's memory
  bool mig_enabled = false;
  std::optional<bool> persistence_enabled;
  // At the time of the query, before the run.
  std::optional<std::int64_t> sm_clock_mhz;
  std::optional<std::int64_t> power_w;
  std::optional<std::int64_t> temperature_c;
};

// Facts that a reader of a bundle needs and that doctor checks. Reading them changes nothing.
struct MachineFacts {
  std::string hostname;
  std::string kernel;        // "6.1.0-18-amd64"
  std::string architecture;  // "x86_64"
  std::string distribution;  // "Debian GNU/Linux 12 (bookworm)"
  std::string cpu;
  int logical_cpus = 0;
  std::uint64_t memory_bytes = 0;
  std::string container;  // "docker", "kubernetes", ...; empty: none found

  std::string driver_version;  // empty: no NVIDIA kernel driver is loaded
  std::vector<GpuFacts> gpus;
  std::optional<int> gpu_processes;  // that compute on them now
  std::string gpu_problem;           // why `gpus` is empty or incomplete, in words

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
