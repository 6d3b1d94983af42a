// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "analysis/names/rules.h"
#include "analysis/stages/attribution.h"
#include "analysis/stages/stages.h"
#include "analysis/structure/structure.h"
#include "results/rank_summary.h"

namespace gpuwhy {

// All collectives of a recording.
struct Collectives {
  std::vector<CollectiveRow> launches;  // by device, then in time; without point-to-point
  std::vector<GroupRow> groups;         // by device, communicator, operation
  std::string communicators_by;         // how they are identified, in words; may be empty
  std::int64_t num_left_out = 0;        // beyond the first kMostLaunches of a communicator
};
inline constexpr std::int64_t kMostLaunches = 4096;

// Separate from profile(), because only summaries for other ranks need it. Times count from
// `start_ns`, when the recording began.
Collectives find_collectives(const Trace& trace, const Rules& rules, const Stages& stages,
                             const Attribution& attribution, const Structure& structure,
                             std::int64_t start_ns);

}  // namespace gpuwhy
