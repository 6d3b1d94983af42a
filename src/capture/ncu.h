// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "capture/tools.h"
#include "capture/trigger.h"

namespace gpuwhy {

// What ncu measures: one file of conf/profiling/ncu/.
struct NcuSettings {
  std::string set;  // empty: use `sections`
  std::vector<std::string> sections;
  std::vector<std::string> metrics;
  std::string target_processes;
  std::string replay_mode;
  std::string cache_control;
  std::string clock_control;
  std::vector<std::string> extra_options;
};

// Selection of launches: those whose name is in `names`, without the first `launch_skip`, at most
// `launch_count`.
struct NcuFilter {
  bool is_mangled = false;         // whether `names` are mangled; else demangled
  std::vector<std::string> names;  // whole
  std::int64_t launch_skip = 0;
  std::int64_t launch_count = 1;
  bool is_per_launch_config = false;  // skip and count apply per kernel, grid and block
  std::vector<SeenMark> marks;        // only inside these; empty: anywhere
};

// The command that measures into `report` (with its suffix). Passes every option whose default
// differs between releases. Throws kEnvironment if this ncu cannot express the filter.
std::vector<std::string> build_ncu_cmd(const NcuTool& ncu, const NcuSettings& settings,
                                       const NcuFilter& filter, const std::filesystem::path& report,
                                       const std::vector<std::string>& work_argv);

// Throws kUsage if this ncu does not know a set, section or metric: it would only warn, measure
// nothing and exit with 0. Metrics are looked up among those of all chips that ncu knows.
void check_ncu_names(const System& system, const NcuTool& ncu, const NcuSettings& settings);

// The sections of this ncu, as it lists them.
std::string list_ncu_sections(const System& system, const NcuTool& ncu);

}  // namespace gpuwhy
