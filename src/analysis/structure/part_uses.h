// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "analysis/structure/structure.h"
#include "results/rank_summary.h"
#include "results/structure.h"
#include "trace/trace.h"

namespace gpuwhy {

// By device, pass, block and part. `kernel_parts` are places in `summary.parts`, by kernel.
std::vector<PartRow> find_part_uses(const Trace& trace, const Structure& structure,
                                    const StructureSummary& summary,
                                    const std::vector<std::uint32_t>& kernel_parts);

}  // namespace gpuwhy
