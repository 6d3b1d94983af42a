// SPDX-License-Identifier: Apache-2.0
//
// Machine and tools as JSON. Unknown values are null, never an empty text or a zero.
#include "session/machine_json.h"

#include <array>

#include "base/json.h"

namespace gpuwhy {
namespace {

Json known(const std::string& text) {
  return text_or_null(text);
}

Json known(std::uint64_t number) {
  return number == 0 ? Json(nullptr) : Json(number);
}

template <typename T>
Json known(const std::optional<T>& value) {
  return number_or_null(value);
}

// Options whose presence changes the command lines we build; together they identify a dialect.
constexpr std::array<const char*, 12> kNsysOptions = {
    "--capture-range",       "--capture-range-end",   "--cuda-graph-trace",
    "--cuda-trace-scope",    "--discard-environment", "--gpu-metrics-device",
    "--gpu-metrics-devices", "--nccl-trace",          "--pytorch",
    "--session-new",         "--start-later",         "--trace-fork-before-exec"};
constexpr std::array<const char*, 10> kNcuOptions = {
    "--app-replay-mode", "--clock-control", "--communicator", "--filter-mode",
    "--graph-profiling", "--kernel-id",     "--nvtx-include", "--nvtx-push-pop-scope",
    "--range-filter",    "--rename-kernels"};

template <std::size_t N>
Json options_json(const Tool& tool, const std::array<const char*, N>& of_interest) {
  if (tool.options.empty()) {
    return nullptr;
  }
  Json options = Json::object();
  for (const char* option : of_interest) {
    options[option] = tool.has_option(option);
  }
  return options;
}

Json tool_json(const Tool& tool) {
  return {{"version", tool.version.text()},
          {"version_full", tool.version.full},
          {"path", tool.path.string()}};
}

}  // namespace

// For the bundle and for doctor --json. Facts that could not be read are null.
Json machine_json(const MachineFacts& machine) {
  Json gpus = Json::array();
  for (const GpuFacts& gpu : machine.gpus) {
    gpus.push_back({{"index", gpu.index},
                    {"name", gpu.name},
                    {"memory_bytes", known(gpu.memory_bytes)},
                    {"mig_enabled", gpu.mig_enabled},
                    {"persistence_enabled", known(gpu.persistence_enabled)},
                    {"sm_clock_mhz", known(gpu.sm_clock_mhz)},
                    {"power_w", known(gpu.power_w)},
                    {"temperature_c", known(gpu.temperature_c)}});
  }
  return {{"hostname", known(machine.hostname)},
          {"kernel", known(machine.kernel)},
          {"architecture", known(machine.architecture)},
          {"distribution", known(machine.distribution)},
          {"cpu", known(machine.cpu)},
          {"logical_cpus", machine.logical_cpus},
          {"memory_bytes", known(machine.memory_bytes)},
          {"container", known(machine.container)},
          {"driver_version", known(machine.driver_version)},
          {"gpus", gpus},
          {"gpu_processes", known(machine.gpu_processes)},
          {"gpu_problem", known(machine.gpu_problem)},
          {"counters_need_admin", known(machine.counters_need_admin)},
          {"cap_sys_admin", machine.has_cap_sys_admin},
          {"cap_perfmon", machine.has_cap_perfmon},
          {"perf_event_paranoid", known(machine.perf_event_paranoid)}};
}

// The dialect is what the installed tool understands, and whether the tool said so or its version
// implies it.
Json tools_json(const std::optional<NsysTool>& nsys, const std::optional<NcuTool>& ncu) {
  Json tools = {{"nsys", nullptr}, {"ncu", nullptr}};
  if (nsys) {
    tools["nsys"] = tool_json(*nsys);
    tools["nsys"]["importer"] = known(nsys->importer.string());
    tools["nsys"]["dialect"] = {
        {"report_names", nsys->has_old_report_names ? "old" : "new"},
        {"report_names_from", nsys->reports_asked ? "tool" : "version"},
        {"kernel_summary_report", nsys->kernel_summary_report},
        {"reports", nsys->reports_asked ? Json(nsys->reports) : Json(nullptr)},
        {"options", options_json(*nsys, kNsysOptions)}};
  }
  if (ncu) {
    tools["ncu"] = tool_json(*ncu);
    tools["ncu"]["dialect"] = {{"sets", ncu->sets.empty() ? Json(nullptr) : Json(ncu->sets)},
                               {"default_set", known(ncu->default_set)},
                               {"default_target_processes", known(ncu->default_target_processes)},
                               {"options", options_json(*ncu, kNcuOptions)}};
  }
  return tools;
}

}  // namespace gpuwhy
