// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "analysis/stages/attribution.h"
#include "results/range.h"
#include "trace/trace.h"

namespace gpuwhy {

// NVTX ranges by name with the kernels launched inside them, by kernel time. `longest_start_ns` is
// a time of the trace. A diagnostic says how
// much ran on a thread without ranges while another had one open.
std::vector<RangeTotal> summarise_ranges(const Trace& trace, const Attribution& attribution,
                                         Diagnostics* diagnostics = nullptr);

// The same with names that differ only in their numbers as one row: "token_N (64 names)".
std::vector<RangeTotal> fold_numbered(const std::vector<RangeTotal>& ranges);

}  // namespace gpuwhy
