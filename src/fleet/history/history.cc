// SPDX-License-Identifier: Apache-2.0
//
// Sums shared by all sources of history.
#include "fleet/history/history.h"

#include <algorithm>
#include <tuple>

namespace gpuwhy {

void WideStageSums::add(const WideStageSums& other) {
  for (const auto& column : kStageSums) {
    (this->*column.sum).add(other.*column.sum);
  }
}

void WidePartSums::add(const WidePartSums& other) {
  ranks.add(other.ranks);
  for (const auto& column : kPartSums) {
    (this->*column.sum).add(other.*column.sum);
  }
}

void sort_runs(std::vector<KnownRun>& runs) {
  std::sort(runs.begin(), runs.end(), [](const KnownRun& a, const KnownRun& b) {
    return std::tie(a.started_unix_s, a.run_id) < std::tie(b.started_unix_s, b.run_id);
  });
}

}  // namespace gpuwhy
