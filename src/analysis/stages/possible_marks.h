// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "analysis/stages/stages.h"
#include "results/range.h"

namespace gpuwhy {

// Ranges that could name stages where none are known, by kernel time; none where stages are known.
// `kernel_ns` is that of the whole recording.
std::vector<PossibleMark> possible_marks(const Stages& stages,
                                         const std::vector<RangeTotal>& ranges,
                                         std::int64_t kernel_ns = 0);

}  // namespace gpuwhy
