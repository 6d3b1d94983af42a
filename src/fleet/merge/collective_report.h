// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "fleet/merge/fleet_report.h"

namespace gpuwhy {

// Fills in the results on collectives, for the job and for each rank of `report`, whose order is
// that of `fleet`.
void add_collectives(const FleetSummary& fleet, FleetReport& report);

// Time that all ranks of a collective together spent after the last one had arrived.
std::int64_t transfer_of(const FleetCollective& one);

}  // namespace gpuwhy
