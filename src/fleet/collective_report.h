// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "fleet/fleet_report.h"

namespace llmprof {

// Fills in what collectives say: of the job, and of each rank of `report`, which stand in the order
// of `fleet`.
void add_collectives(const FleetSummary& fleet, FleetReport& report);

}  // namespace llmprof
