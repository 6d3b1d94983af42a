// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "analysis/findings/findings.h"
#include "analysis/kernels/launch_groups.h"
#include "analysis/names/rules.h"
#include "analysis/stages/stage_times.h"
#include "base/pass_timer.h"
#include "results/ledger_history.h"
#include "results/results.h"
#include "trace/kernel_summary.h"
#include "trace/trace.h"

namespace gpuwhy {

// One instance of a stage, counted once for all ranks of its group. Three lengths that must not be
// mixed: the host range (the mark), the GPU window, and the period.
struct StageStep {
  std::uint32_t stage = 0;     // into Analysis::stages as profile() left it
  std::uint32_t instance = 0;  // into Profile::stages.instances
  std::int64_t start_ns = 0;
  std::int64_t duration_ns = 0;  // of the mark, on the host
  bool is_open = false;
  bool is_step = false;      // one forward pass; else a loop of them
  std::uint32_t number = 0;  // of a step: number_steps()
  std::optional<std::int64_t> tokens;
  std::optional<std::int64_t> sequences;
  StepCounts counts = {};
  std::uint32_t group = 0;  // into Analysis::rank_groups
  // On the GPUs of the group; nullopt if it launched no GPU work.
  std::optional<std::int64_t> gpu_start_ns;   // its first kernel on any of them
  std::optional<std::int64_t> gpu_window_ns;  // to the end of its last work on any of them
  std::optional<std::int64_t> gpu_work_ns;    // its own work runs, on the busiest of them
  // From its first kernel to that of the group's next step. nullopt: the last one, or a pause
  // follows.
  std::optional<std::int64_t> period_ns;
  bool is_before_same = false;  // the next step is of the same stage
  bool is_steady = false;       // in the steady window of its stage
};

// The results of a recording, and what only later steps need. Filled by profile() and complete().
//
// Stages in order, then the startup, steady and ending phase where they differ, then the whole
// capture, each by device: this is the order of the ledgers.
struct Analysis : Results {
  std::string absent;       // why there is no recording at all; empty: there is one
  std::string absent_next;  // what to do about that
  bool is_summary = false;  // made of a kernel summary: no timestamps, no stages, no devices
  std::string engine;       // whose step markers they are; empty: no engine's
  std::vector<StageTimes> stage_times;  // of the same stages
  std::vector<StageStep> stage_steps;
  std::string steady_window;                  // which decode steps are the steady window, and why
  std::vector<LaunchGroup> launch_groups;     // by total time
  std::vector<LedgerHistory> ledger_history;  // of the capture, by device as in Trace::devices
  std::vector<RangeTotal> all_ranges;         // by kernel time; results have the first hundred
};

// The analysis of a kernel summary: no stages, no ledger, no devices.
Analysis analyze_summary(const KernelSummary& summary, const Rules& rules);

}  // namespace gpuwhy
