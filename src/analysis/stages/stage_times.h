// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "analysis/stages/stages.h"
#include "results/stage.h"

namespace gpuwhy {

std::vector<StageTimes> time_stages(const Stages& stages);

// The same statistics of any durations, in time order, without a stage.
StageTimes times_of_durations(std::vector<std::int64_t> durations);

std::vector<StageOverhead> overheads_of(const std::vector<StageTimes>& baseline,
                                        const std::vector<StageTimes>& profiled);

}  // namespace gpuwhy
