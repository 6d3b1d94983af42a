// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "analysis/analysis.h"
#include "analysis/profile.h"
#include "analysis/structure/collectives.h"
#include "analysis/structure/part_uses.h"
#include "results/rank_summary.h"

namespace gpuwhy {

// What a summary holds and a report does not.
struct RankDetails {
  Collectives collectives;
  std::vector<PartRow> parts = {};
};
RankDetails rank_details(const Profile& profile);  // empty without a trace

// Summaries of the ranks in an analysis. `identity` is what the launcher said; GPU and recorder are
// filled in if empty, and so are engine and start where the recording tells them. A recording of n
// GPUs contains n ranks: for rank r they are r*n, r*n+1, ... in device order, of n times as many.
// Of several files each has the rank that its name or the recording tells, if all do; otherwise
// ranks count in the order of files. An analysis without a recording yields the stages of the
// unprofiled pass.
std::vector<RankSummary> summarise_ranks(const Analysis& analysis, const RankDetails& details,
                                         const RankIdentity& identity);

}  // namespace gpuwhy
