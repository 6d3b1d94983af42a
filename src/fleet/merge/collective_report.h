// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "fleet/merge/fleet_report.h"

namespace llmprof {

// Fills in the results on collectives, for the job and for each rank of `report`, whose order is
// that of `fleet`.
void add_collectives(const FleetSummary& fleet, FleetReport& report);

}  // namespace llmprof
