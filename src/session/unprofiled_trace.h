// SPDX-License-Identifier: Apache-2.0
//
// What the stage timer saw, as a recording: so that stages are told by the same rules with and
// without a profiler.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "analysis/stages.h"
#include "capture/gate.h"
#include "capture/nvtx_timer.h"
#include "trace/trace.h"

namespace llmprof {

Trace trace_of(const TimedRun& run);

// As seen_marks() of marks.h, with what the timer knows of registered strings.
std::vector<SeenMark> seen_marks(const TimedRun& run);

// Processes in which a stage was marked.
std::size_t count_processes(const Trace& trace, const Stages& stages);

// What a recording that a gate opens must show of the stages that the timer saw: those that began
// when it was open. nsys takes a while to open it, in which other threads may begin.
struct ExpectedStages {
  std::map<std::string, std::int64_t> instances;
  std::size_t num_processes = 0;
};
ExpectedStages expected_stages(const Trace& trace, const Stages& stages, const Gate& gate);

}  // namespace llmprof
