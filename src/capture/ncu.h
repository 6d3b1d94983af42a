// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "capture/gate.h"
#include "capture/tools.h"

namespace llmprof {

// What ncu measures: a file of conf/profiling/ncu/.
struct NcuSettings {
  std::string set;  // empty: the sections
  std::vector<std::string> sections;
  std::vector<std::string> metrics;
  std::string target_processes;
  std::string replay_mode;
  std::string cache_control;
  std::string clock_control;
  std::vector<std::string> extra_options;
};

// Which launches: those whose name is one of `names`, of these the ones behind the first
// `launch_skip`, and of these `launch_count`.
struct NcuFilter {
  bool is_mangled = false;         // whether `names` are mangled; else demangled
  std::vector<std::string> names;  // whole
  std::int64_t launch_skip = 0;
  std::int64_t launch_count = 1;
  bool is_per_launch_config = false;  // skip and count hold for each kernel, grid and block alone
  std::vector<SeenMark> marks;        // only inside these; empty: anywhere
};

// The command that measures into `report` (with its suffix). Says every default that differs
// between releases. Throws kEnvironment when this ncu cannot express the filter.
std::vector<std::string> build_ncu_cmd(const NcuTool& ncu, const NcuSettings& settings,
                                       const NcuFilter& filter, const std::filesystem::path& report,
                                       const std::vector<std::string>& work_argv);

// Throws kUsage when a set, section or metric is none of this ncu's: it would only warn, measure
// nothing and exit 0. Metrics are looked up among those of all chips ncu knows.
void check_ncu_names(const System& system, const NcuTool& ncu, const NcuSettings& settings);

// The sections this ncu has, as it lists them.
std::string list_ncu_sections(const System& system, const NcuTool& ncu);

}  // namespace llmprof
