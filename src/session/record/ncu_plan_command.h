// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "analysis/counters/ncu_plan.h"
#include "capture/tools.h"
#include "session/record/run_options.h"

namespace gpuwhy {

struct Profile;

// Throws kContract if a recording has no kernels that ncu could be pointed to.
void require_plannable(const Profile& profile, const std::string& recording);

// The plan for this particular ncu: gated if the configuration requests it and the recording has
// the marks. `program_s`: one run of the program without a profiler; 0 if unknown.
NcuPlan make_plan(const RunOptions& options, const NcuTool& ncu, const Profile& profile,
                  double program_s);

// Translates a planned command to ncu's filters.
NcuFilter filter_of(const PlannedCommand& command, const std::vector<SeenMark>& seen);

// The command lines of a plan, with PROGRAM in place of the program.
std::vector<std::vector<std::string>> plan_commands(const NcuPlan& plan, const RunOptions& options,
                                                    const NcuTool& ncu, const Profile& profile);

// The time one run of the program took, if the recording is in a bundle that says so; else 0.
double program_seconds(const std::string& recording);

// The plan as a document of its own, for scripts; `argv` are its commands, where they are known.
std::string plan_json(const NcuPlan& plan, const std::vector<std::vector<std::string>>& argv = {});

}  // namespace gpuwhy
