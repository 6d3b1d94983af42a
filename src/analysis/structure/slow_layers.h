// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "analysis/structure/structure.h"
#include "results/structure.h"
#include "trace/trace.h"

namespace gpuwhy {

// Layers whose kernels take a tenth longer than those of the other layers of their kind, by the
// median over passes. At most ten of a kind of pass; none with fewer than five passes. `parts` is
// of summarise_structure.
std::vector<SlowLayer> find_slow_layers(const Trace& trace, const Structure& structure,
                                        const StructureSummary& summary,
                                        const std::vector<std::uint32_t>& parts);

}  // namespace gpuwhy
