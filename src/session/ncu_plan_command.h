// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "analysis/counters/ncu_plan.h"
#include "base/json_fwd.h"
#include "capture/tools.h"
#include "session/run_options.h"

namespace llmprof {

// The plan for this very ncu: gated where the configuration asks for it and the recording has the
// marks. `program_s`: one run of the program without a profiler; 0: not known.
NcuPlan make_plan(const RunOptions& options, const NcuTool& ncu, const Profile& profile,
                  double program_s);

// From a plan to what ncu is told.
NcuFilter filter_of(const PlannedCommand& command, const std::vector<SeenMark>& seen);

Json plan_json(const NcuPlan& plan);

}  // namespace llmprof
