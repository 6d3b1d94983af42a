// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "results/composition.h"

namespace gpuwhy {

struct Analysis;
struct EfficiencySetup;

// The steps of engines that say how many sequences share one, by stage, then sequences. Ratios need
// a model, and analysis.efficiency.
std::vector<Composition> find_compositions(const Analysis& analysis, const EfficiencySetup* model);

}  // namespace gpuwhy
