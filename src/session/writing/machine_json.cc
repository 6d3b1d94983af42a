// SPDX-License-Identifier: Apache-2.0
//
// Machine and tools as JSON. Unknown values are null, never an empty text or a zero.
#include "session/writing/machine_json.h"

#include <array>

#include "base/json.h"
#include "results/row_json.h"

namespace gpuwhy {
namespace {

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

Json machine_json(const MachineFacts& machine) {
  Json json = {{"hostname", text_or_null(machine.hostname)}};
  json = object_json<Environment>(machine, std::move(json));
  json["gpu_problem"] = text_or_null(machine.gpu_problem);
  json["counters_need_admin"] = number_or_null(machine.counters_need_admin);
  json["cap_sys_admin"] = machine.has_cap_sys_admin;
  json["cap_perfmon"] = machine.has_cap_perfmon;
  json["perf_event_paranoid"] = number_or_null(machine.perf_event_paranoid);
  return json;
}

// The dialect is what the installed tool understands, and whether the tool said so or its version
// implies it.
Json tools_json(const std::optional<NsysTool>& nsys, const std::optional<NcuTool>& ncu) {
  Json tools = {{"nsys", nullptr}, {"ncu", nullptr}};
  if (nsys) {
    tools["nsys"] = tool_json(*nsys);
    tools["nsys"]["importer"] = text_or_null(nsys->importer.string());
    tools["nsys"]["dialect"] = {
        {"report_names", nsys->has_old_report_names ? "old" : "new"},
        {"report_names_from", nsys->reports_asked ? "tool" : "version"},
        {"kernel_summary_report", nsys->kernel_summary_report},
        {"reports", nsys->reports_asked ? Json(nsys->reports) : Json(nullptr)},
        {"options", options_json(*nsys, kNsysOptions)}};
  }
  if (ncu) {
    tools["ncu"] = tool_json(*ncu);
    tools["ncu"]["dialect"] = {
        {"sets", ncu->sets.empty() ? Json(nullptr) : Json(ncu->sets)},
        {"default_set", text_or_null(ncu->default_set)},
        {"default_target_processes", text_or_null(ncu->default_target_processes)},
        {"options", options_json(*ncu, kNcuOptions)}};
  }
  return tools;
}

}  // namespace gpuwhy
