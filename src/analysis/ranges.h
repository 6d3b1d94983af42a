// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "analysis/analysis.h"
#include "analysis/attribution.h"

namespace llmprof {

// NVTX ranges by name with the kernels launched inside them, by kernel time.
std::vector<RangeTotal> summarise_ranges(const Trace& trace, const Attribution& attribution);

}  // namespace llmprof
