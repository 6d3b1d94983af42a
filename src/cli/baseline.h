// SPDX-License-Identifier: Apache-2.0
//
// What the stage timer saw, as a recording: so that stages are told by the same rules with and
// without a profiler.
#pragma once

#include <vector>

#include "capture/gate.h"
#include "capture/nvtx_timer.h"
#include "trace/trace.h"

namespace llmprof {

Trace trace_of(const TimedRun& run);

// As seen_marks() of marks.h, with what the timer knows of registered strings.
std::vector<SeenMark> seen_marks(const TimedRun& run);

}  // namespace llmprof
