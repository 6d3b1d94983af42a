// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "model/gpu.h"
#include "trace/counters.h"

namespace gpuwhy {

struct Analysis;

// Joins and judges; fills in Analysis::counters, and in launch groups and kernels what was measured
// of them. Each launch group is covered by at most one result: the one nearest to its median
// duration.
void join_counters(const Counters& counters, const std::vector<GpuSpec>& gpus, Analysis& analysis);

}  // namespace gpuwhy
