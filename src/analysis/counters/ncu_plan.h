// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "analysis/analysis.h"
#include "analysis/kernels/launch_groups.h"
#include "analysis/stages/attribution.h"
#include "analysis/stages/stages.h"

namespace gpuwhy {

// Limits of a plan, and capabilities of the installed ncu.
struct PlanOptions {
  std::size_t top_n = 20;              // groups of launches at most
  double budget_s = 600;               // seconds ncu may take in all
  int passes = 10;                     // ncu's passes over one launch, an estimate
  double program_s = 0;                // one run of the program without a profiler
  bool has_per_launch_config = false;  // ncu can count each signature alone
  bool is_gated = true;                // launches are counted inside their stage only
};

// A group that gets counters, measured on one of its launches.
struct PlannedKernel {
  LaunchGroup group;                    // summed over the GPUs and processes that launch it alike
  std::size_t command = 0;              // into NcuPlan::commands
  std::vector<std::string> parts = {};  // of the model that it runs: "qkv"; by time
};

// One run of the program under ncu.
struct PlannedCommand {
  std::vector<std::string> stages;  // whose launches are counted; empty: all
  bool is_mangled = false;
  std::vector<std::string> names;  // kernels, sorted
  std::int64_t launch_skip = 0;    // of the launches of these names
  std::int64_t launch_count = 0;
  bool is_per_launch_config = false;
  std::int64_t expected_launches = 0;  // ncu will measure
  double forecast_s = 0;
};

// A group that is not measured.
struct ExcludedKernel {
  LaunchGroup group;
  std::string
      reason;  // communication, outside_stages, warm_up, other_process, beyond_top_n, budget
};

// The plan for one ncu pass.
struct NcuPlan {
  std::vector<PlannedKernel> kernels;  // by time
  std::vector<PlannedCommand> commands;
  std::vector<ExcludedKernel> excluded;  // by time
  double budget_s = 0;
  double forecast_s = 0;
  std::int64_t covered_ns = 0;  // GPU time represented by planned kernels
  std::int64_t kernel_ns = 0;   // of all kernels
};

// Selects the launches to measure. `kernel_parts` are places in the parts of the structure, by
// kernel; empty: none was found.
NcuPlan plan_ncu(const Trace& trace, const Stages& stages, const Attribution& attribution,
                 const std::vector<std::uint32_t>& kernel_parts, const Analysis& analysis,
                 const PlanOptions& options);

}  // namespace gpuwhy
