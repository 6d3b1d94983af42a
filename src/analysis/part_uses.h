// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "analysis/profile.h"
#include "results/rank_summary.h"

namespace gpuwhy {

// By device, pass, block and part. Empty if no passes were found. The profile must have a trace.
std::vector<PartRow> find_part_uses(const Profile& profile);

}  // namespace gpuwhy
