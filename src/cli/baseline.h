// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "analysis/rules.h"
#include "capture/stage_times.h"

namespace llmprof {

struct BaselineStages {
  std::string source;            // which marks told them, in the words of the analysis
  std::vector<StageTime> times;  // `request` first where it is marked; empty: no stage was found
};

// The stages of a run without a profiler, found by the same rules as those of a recording, so that
// the two can be compared: domain LLM, else markers of engines, else the rules.
BaselineStages baseline_stages(const TimedRun& run, const Rules& rules);

}  // namespace llmprof
