// SPDX-License-Identifier: Apache-2.0
//
// Report of a job from its ranks, for files and for summaries in memory alike: `gpuwhy merge` and
// `gpuwhy analyze` of several files say the same about the same ranks.
#include "fleet/merge/job_report.h"

#include <algorithm>
#include <cmath>

#include "fleet/merge/merge.h"
#include "fleet/summary/summary_file.h"

namespace gpuwhy {
namespace {

constexpr std::size_t kMostExplained = 16;

}  // namespace

void explain_stragglers(const FleetSummary& fleet, const OwnSummary& own, FleetReport& report) {
  std::size_t num = 0;
  for (const std::size_t i : report.stragglers) {
    RankVerdict& verdict = report.ranks[i];
    if (!verdict.is_straggler) {
      continue;
    }
    if (++num > kMostExplained) {
      verdict.reason.absent = "only the worst are looked into";
    } else if (const auto summary = own(verdict.rank)) {
      explain_straggler(fleet, *summary, verdict);
    } else {
      verdict.reason.absent = "its own summary is not among the files";
    }
  }
}

std::set<std::int64_t> ranks_to_keep(const FleetReport& report) {
  const RankVerdict* middle = nullptr;
  std::set<std::int64_t> kept;
  for (const RankVerdict& verdict : report.ranks) {
    if (verdict.is_straggler) {
      kept.insert(verdict.rank);
    } else if (verdict.deviation_fraction &&
               (middle == nullptr ||
                std::abs(*verdict.deviation_fraction) < std::abs(*middle->deviation_fraction))) {
      middle = &verdict;
    }
  }
  if (middle == nullptr) {
    return {};
  }
  kept.insert(middle->rank);
  return kept;
}

FleetReport report_job(const std::vector<RankSummary>& ranks) {
  FleetMerge merge;
  for (const RankSummary& rank : ranks) {
    merge.add(summary_bytes(rank));
  }
  const FleetSummary fleet = merge.finish();
  FleetReport report = report_fleet(fleet);
  explain_stragglers(
      fleet,
      [&](std::int64_t rank) {
        const auto found =
            std::find_if(ranks.begin(), ranks.end(),
                         [&](const RankSummary& summary) { return summary.identity.rank == rank; });
        return found == ranks.end() ? std::nullopt : std::optional(*found);
      },
      report);
  return report;
}

}  // namespace gpuwhy
