// SPDX-License-Identifier: Apache-2.0
//
// What a run knows besides its recording.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "results/field.h"

namespace gpuwhy {

// One GPU of the machine, at the start of the run.
struct MachineGpu {
  std::int64_t index = 0;
  std::string name;
  std::optional<std::int64_t> memory_bytes;
  bool mig_enabled = false;
  std::optional<bool> persistence_enabled;
  std::optional<std::int64_t> sm_clock_mhz;
  std::optional<std::int64_t> power_w;
  std::optional<std::int64_t> temperature_c;
};

template <typename F>
void describe(const MachineGpu*, F&& f) {
  using T = MachineGpu;
  const auto asked = [](std::string_view unit) {
    return number(unit, "", "", "environment", "as nvidia-smi reported it when the run began");
  };
  f("index", &T::index, asked("1"));
  f("name", &T::name, plain("as the driver spells it"));
  f("memory_bytes", &T::memory_bytes, asked("bytes"));
  f("mig_enabled", &T::mig_enabled, plain("whether it is split into instances"));
  f("persistence_enabled", &T::persistence_enabled, plain("whether its driver stays loaded"));
  f("sm_clock_mhz", &T::sm_clock_mhz, asked("MHz"));
  f("power_w", &T::power_w, asked("W"));
  f("temperature_c", &T::temperature_c, is_signed(asked("C")));
}

// The machine of a run.
struct Environment {
  std::string distribution;
  std::string kernel;
  std::string architecture;
  std::string cpu;
  std::int64_t logical_cpus = 0;
  std::optional<std::int64_t> memory_bytes;
  std::string container;
  std::string driver_version;
  std::vector<MachineGpu> gpus;
  std::optional<std::int64_t> gpu_processes;
};

template <typename F>
void describe(const Environment*, F&& f) {
  using T = Environment;
  const auto noted = [](std::string_view unit) {
    return number(unit, "", "", "environment", "as the machine reported it when the run began");
  };
  f("distribution", &T::distribution, maybe("the operating system"));
  f("kernel", &T::kernel, maybe("its kernel"));
  f("architecture", &T::architecture, maybe("of the processor"));
  f("cpu", &T::cpu, maybe("the processor"));
  f("logical_cpus", &T::logical_cpus, noted("1"));
  f("memory_bytes", &T::memory_bytes, noted("bytes"));
  f("container", &T::container, maybe("the kind of container"));
  f("driver_version", &T::driver_version, maybe("of the NVIDIA driver"));
  f("gpus", &T::gpus, plain("the GPUs of the machine"));
  f("gpu_processes", &T::gpu_processes, noted("1"));
}

// A violation of the capture contract.
struct BreachRow {
  std::string reason;
  std::string pass;
  bool is_fatal = false;
  std::string sentence;
  std::string next;
};

template <typename F>
void describe(const BreachRow*, F&& f) {
  using T = BreachRow;
  f("reason", &T::reason, plain("a stable name (docs/capture-contract.md)"));
  f("pass", &T::pass, plain("the pass it is about"));
  f("fatal", &T::is_fatal, plain("whether the pass is of no use"));
  f("sentence", &T::sentence, plain("what the capture lacks"));
  f("next", &T::next, plain("what to do"));
}

// What a run knows besides its recording; absent if there was no run.
struct RunFacts {
  std::optional<Environment> environment;          // the machine
  std::optional<std::vector<BreachRow>> contract;  // what the capture lacks
  std::optional<std::int64_t> program_ns = {};     // the program's length without a profiler
  std::string command = "";                        // its command line, without secrets
};

}  // namespace gpuwhy
