// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "fleet/merge/fleet_report.h"

namespace gpuwhy {

// The groups of ranks in which a job communicates: how they share the model, and who is late in
// them. Only groups that recordings name.
std::vector<JobGroup> find_groups(const FleetSummary& fleet);

}  // namespace gpuwhy
