// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "fleet/merge/fleet_report.h"

namespace gpuwhy {

// Fills in cause and parts of each straggler, and whether lateness is pinned to a rank. Needs its
// collectives and deviations.
void add_causes(const FleetSummary& fleet, FleetReport& report);

}  // namespace gpuwhy
