// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "results/range.h"

namespace gpuwhy {

// The phases among the ranges of a recording, by host time. `engine` is the one whose steps were
// found: some phases are plain words, which mean something only beside its steps.
std::vector<HostPhase> find_host_phases(const std::vector<RangeTotal>& ranges,
                                        const std::string& engine);

}  // namespace gpuwhy
