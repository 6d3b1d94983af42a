// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "analysis/analysis.h"
#include "analysis/collectives.h"
#include "fleet/rank_summary.h"

namespace llmprof {

// What a rank hands on of its analysis. `identity` is as its launcher told it; GPU and how it was
// recorded are filled in where they are empty. A recording of n GPUs holds n ranks: those of rank r
// are r*n, r*n+1, ... in the order of devices, of n times as many. An analysis without a recording
// gives the stages of the bare pass.
std::vector<RankSummary> summarise_ranks(const Analysis& analysis, const Collectives& collectives,
                                         const RankIdentity& identity);

}  // namespace llmprof
