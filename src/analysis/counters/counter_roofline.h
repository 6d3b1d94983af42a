// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "model/gpu.h"
#include "model/roofline.h"
#include "trace/counters.h"

namespace gpuwhy {

// Work, traffic and stalls of a launch according to its counters, whatever metrics were collected.
RooflineInput roofline_input(const Counters& counters, const CounterResult& result);

// The peak rates of its GPU at the clock of the measurement: from the report's device attributes
// and measured peaks first, then from `table`. Unknown values are absent.
GpuRoofs roofs_of(const Counters& counters, const CounterResult& result,
                  const std::vector<GpuSpec>& table);

// The SM clock under the profiler.
std::optional<double> sm_clock_hz(const Counters& counters, const CounterResult& result);

}  // namespace gpuwhy
