// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "analysis/analysis.h"
#include "analysis/stages/attribution.h"
#include "analysis/stages/stages.h"
#include "trace/trace.h"

namespace gpuwhy {

// One row per stage: instances, durations on the host, tokens.
std::vector<StageRow> summarise_stages(const Stages& stages);

// Adds the kernels and opaque graphs launched by each stage. A nested stage counts its own again.
void add_kernel_time(const Trace& trace, const Stages& stages, const Attribution& attribution,
                     std::vector<StageRow>& summaries);

}  // namespace gpuwhy
