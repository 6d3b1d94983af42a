// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string_view>

#include "fleet/merge/fleet_summary.h"
#include "results/fleet.h"

namespace gpuwhy {

// Whether a stage lies within another one, so that its time must not be added to that one's.
bool is_nested_stage(std::string_view stage);

// Analyzes a merged summary.
FleetReport report_fleet(const FleetSummary& fleet);

// Adds what a rank's own summary tells: which kernel, and whether it is one or all of them.
void explain_straggler(const FleetSummary& fleet, const RankSummary& own, RankVerdict& verdict);

// For one rank, from its own file. nullopt if it has no kernels or no other rank has them.
std::optional<StragglerCause> straggler_cause(const FleetSummary& fleet, const RankSummary& own);

}  // namespace gpuwhy
