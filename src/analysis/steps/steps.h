// SPDX-License-Identifier: Apache-2.0
//
// The steps of a recording, each counted once.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "analysis/analysis.h"
#include "analysis/ranks/rank_groups.h"
#include "analysis/stages/stages.h"
#include "analysis/steps/steps_on_gpu.h"
#include "trace/trace.h"

namespace gpuwhy {

// Only the instances whose marks count: those of other ranks of a group repeat them.
Stages counted_stages(const Trace& trace, const Stages& stages, const RankGroups& groups);

// Every counted instance with its times on the GPUs of its group. `own_ns` is by window.
std::vector<StageStep> find_steps(const Trace& trace, const Stages& stages,
                                  const RankGroups& groups, const std::vector<StepOnGpu>& windows,
                                  const std::vector<std::int64_t>& own_ns);

// Their lengths by stage, in time order, for statistics that need them individually.
std::vector<StepRow> summarise_steps(const std::vector<RowName>& stage_names,
                                     const std::vector<StageStep>& steps);

// Marks the steady window of the decode steps of each group. Returns it in words; empty if there
// are not decode steps.
std::string mark_steady(const std::vector<RowName>& stage_names, std::vector<StageStep>& steps);

// The groups with their GPUs and number of steps.
std::vector<RankGroupSummary> summarise_groups(const Trace& trace, const RankGroups& groups,
                                               const std::vector<StageStep>& steps);

}  // namespace gpuwhy
