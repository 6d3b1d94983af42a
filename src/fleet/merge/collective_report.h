// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "fleet/merge/fleet_report.h"

namespace gpuwhy {

// Fills in the results on collectives, for the job and for each rank of `report`, whose order is
// that of `fleet`.
void add_collectives(const FleetSummary& fleet, FleetReport& report);

// Adds one collective, and returns what its ranks waited for the last one. nullopt: only one rank
// recorded it.
std::optional<std::int64_t> add_collective(const FleetCollective& one, GroupCollectives& sum);

}  // namespace gpuwhy
