// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "capture/system.h"

namespace llmprof {

struct GpuFacts {
  int index = 0;
  std::string name;
  std::optional<std::uint64_t> memory_bytes;  // GPUs that share the host's memory do not say
  bool mig_enabled = false;
  std::optional<bool> persistence_enabled;
  // When it was asked, before the run.
  std::optional<std::int64_t> sm_clock_mhz;
  std::optional<std::int64_t> power_w;
  std::optional<std::int64_t> temperature_c;
};

// What a reader of a bundle must know of the machine, and what doctor judges. Read, never changed.
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
  std::string gpu_problem;           // why `gpus` is empty or not all of them, in words

  // Who may read hardware counters: true when the driver keeps them for administrators, nothing
  // when it does not say.
  std::optional<bool> counters_need_admin;
  bool has_cap_sys_admin = false;
  bool has_cap_perfmon = false;
  std::optional<int> perf_event_paranoid;
};

MachineFacts machine_facts(const System& system);

// Memory that a program may still take: what the kernel says is available, or what the container is
// allowed at all if that is less. Nothing where the kernel does not say.
std::optional<std::uint64_t> available_memory_bytes(const System& system);

// Processes that run under one of `names` (as /proc/<pid>/comm has them), as "name (pid 123)".
std::vector<std::string> running_processes(const System& system,
                                           const std::vector<std::string>& names);

}  // namespace llmprof
