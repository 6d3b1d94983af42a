// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "analysis/analysis.h"
#include "model/efficiency_setup.h"

namespace gpuwhy {

// Compares the parts of a model with its minimum cost: weights, keys and values that a part reads,
// what it reached, and the time above its roof. Only where the recording has as many layers as the
// model; else the reason is noted in StructureSummary::cost_reason.
void add_part_costs(const EfficiencySetup& setup, Analysis& analysis);

}  // namespace gpuwhy
