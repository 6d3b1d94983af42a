// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "analysis/structure/structure.h"
#include "results/structure.h"
#include "trace/trace.h"

namespace gpuwhy {

// The passes that take longest against the median of their kind, and where they lose the time. At
// most three of a kind, those that take a tenth longer or more. `parts` is of summarise_structure.
std::vector<SlowPass> find_slow_passes(const Trace& trace, const Structure& structure,
                                       const StructureSummary& summary,
                                       const std::vector<std::uint32_t>& parts);

}  // namespace gpuwhy
