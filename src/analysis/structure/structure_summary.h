// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "analysis/names/kernel_families.h"
#include "analysis/structure/structure.h"
#include "results/structure.h"
#include "trace/trace.h"

namespace gpuwhy {

// `parts` learns the part of each kernel: an index into StructureSummary::parts,
// kNone outside of passes and for stray kernels.
StructureSummary summarise_structure(const Trace& trace, const KernelFamilies& families,
                                     const Structure& structure, std::vector<std::uint32_t>& parts);
StructureSummary summarise_structure(const Trace& trace, const KernelFamilies& families,
                                     const Structure& structure);

}  // namespace gpuwhy
