// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "analysis/analysis.h"
#include "analysis/attribution.h"
#include "analysis/stages.h"

namespace llmprof {

inline constexpr const char* kOutsideStages = "outside";

// Fills in the kernel table, the families and their totals.
void summarise_kernels(const Trace& trace, const Rules& rules, const Stages& stages,
                       const Attribution& attribution, Analysis& analysis);

}  // namespace llmprof
