// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "analysis/ncu_plan.h"
#include "base/json.h"
#include "capture/tools.h"
#include "cli/run_options.h"

namespace llmprof {

struct PlanSource {
  const Trace* trace = nullptr;
  const Analysis* analysis = nullptr;
  double program_s = 0;  // one run of the program without a profiler; 0: not known
};

// The plan for this very ncu: gated where the configuration asks for it and the recording has the
// marks.
NcuPlan make_plan(const RunOptions& options, const NcuTool& ncu, const PlanSource& source);

// From a plan to what ncu is told.
NcuFilter filter_of(const PlannedCommand& command, const std::vector<SeenMark>& seen);

Json plan_json(const NcuPlan& plan);

}  // namespace llmprof
