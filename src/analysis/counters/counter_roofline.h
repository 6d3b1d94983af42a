// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "model/gpu.h"
#include "model/roofline.h"
#include "trace/counters.h"

namespace llmprof {

// What a launch's counters say of its work, traffic and waiting, whatever metrics were collected.
RooflineInput roofline_input(const Counters& counters, const CounterResult& result);

// The ceilings of the GPU it ran on, at the clock the counters were taken at: from the report's
// device attributes and measured peaks first, from `table` second. What neither knows is absent.
GpuRoofs roofs_of(const Counters& counters, const CounterResult& result,
                  const std::vector<GpuSpec>& table);

// The SM clock under the profiler.
std::optional<double> sm_clock_hz(const Counters& counters, const CounterResult& result);

}  // namespace llmprof
