// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "analysis/names/rules.h"
#include "analysis/ranks/rank_groups.h"
#include "results/diagnostic.h"
#include "trace/join.h"

namespace gpuwhy {

// Finds how the clocks of a job's files relate to that of the first: sets shift_ns, clock and
// clock_source of each. Files that cannot be aligned begin with the first, on a clock of their own,
// and are named in the diagnostic that is returned. Throws kUsage if a file was recorded at another
// time than the first.
Diagnostics align_clocks(const Rules& rules, const Parallelism& parallelism,
                         std::vector<TracePart>& parts);

}  // namespace gpuwhy
