// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <set>
#include <vector>

#include "fleet/merge/fleet_report.h"

namespace gpuwhy {

// The summary of a rank that is to be explained; nullopt if it is not at hand.
using OwnSummary = std::function<std::optional<RankSummary>(std::int64_t rank)>;

// Adds to the worst stragglers of a report what their own summaries tell.
void explain_stragglers(const FleetSummary& fleet, const OwnSummary& own, FleetReport& report);

// The ranks whose recordings are worth keeping: the late ones and the one nearest to the median.
// Empty if there is nothing to compare.
std::set<std::int64_t> ranks_to_keep(const FleetReport& report);

// The report of a job whose ranks are all at hand: the same as that of their merged files.
FleetReport report_job(const std::vector<RankSummary>& ranks);

}  // namespace gpuwhy
