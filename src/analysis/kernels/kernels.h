// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "analysis/analysis.h"
#include "analysis/kernels/launch_tally.h"
#include "analysis/names/kernel_families.h"
#include "analysis/stages/attribution.h"
#include "analysis/stages/stages.h"

namespace gpuwhy {

// Fills in the kernel table, the families and their totals.
void summarise_kernels(const Trace& trace, const KernelFamilies& families, const Stages& stages,
                       const Attribution& attribution, const LaunchTallies& tallies,
                       Analysis& analysis);

// Sorts the rows and derives families, short names and names without a family.
void finish_kernel_table(Analysis& analysis);

}  // namespace gpuwhy
