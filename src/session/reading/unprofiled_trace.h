// SPDX-License-Identifier: Apache-2.0
//
// The stage timer's ranges as a recording, so that stages are detected by the same rules with and
// without a profiler.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "capture/nvtx_timer.h"
#include "capture/trigger.h"
#include "trace/trace.h"

namespace gpuwhy {

struct Stages;

// A trace of ranges only: stages are then found by the same rules as in a recording.
Trace trace_of(const TimedRun& run);

// Like seen_marks() in nvtx_marks.h, with the timer's knowledge of registered strings.
std::vector<SeenMark> seen_marks(const TimedRun& run);

// Processes in which a stage was marked.
std::size_t count_processes(const Trace& trace, const Stages& stages);

// The stages that a recording opened by a gate must contain, according to the timer: those that
// began while it was open. nsys takes a while to open it, in which other threads may begin.
struct ExpectedStages {
  std::map<std::string, std::int64_t> instances;
  std::size_t num_processes = 0;
};
ExpectedStages expected_stages(const Trace& trace, const Stages& stages,
                               const CaptureTrigger& gate);

}  // namespace gpuwhy
