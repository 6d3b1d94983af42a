// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "capture/contract.h"
#include "capture/ncu.h"
#include "capture/nsys.h"
#include "capture/supervise.h"
#include "capture/trigger.h"
#include "capture/workload.h"

namespace gpuwhy {

struct Config;

// A configuration as the passes of a run need it: the plain structs of capture/, filled in.
struct RunOptions {
  std::int64_t top_n_kernels = 0;
  std::filesystem::path artifacts_dir;
  bool has_baseline = false;
  bool has_operators = false;
  bool has_nsys = false;
  bool has_torch = false;  // a server's own profiler
  bool has_ncu = false;
  std::vector<std::string> captured_ranks;  // session/record/rank_run.h
  bool has_companion = false;               // bare once more, while other ranks are recorded
  TriggerWish gate;
  StepLimits limits;
  StepLimits ncu_limits;
  double ncu_budget_s = 0;
  int ncu_passes = 0;
  bool is_ncu_gated = false;
  bool keeps_report = false;              // also when nsys wrote keys into it
  std::string rules;                      // a file of rules for stages and families; empty: none
  std::vector<std::string> mark_modules;  // that mark the program: capture/mark_module.h
  Contract contract;
  WorkloadSettings workload;
  NsysSettings nsys;
  NcuSettings ncu;
};

// Of these only the first two, which commands need that run nothing. Throws kUsage.
RunOptions common_options_of(const Config& config);

// Throws kUsage.
RunOptions run_options_of(const Config& config);

// The preset of conf/workload/ that a command line looks like, and nothing when it is a plain one.
std::optional<std::string> recognised_workload(const std::vector<std::string>& command);

}  // namespace gpuwhy
