// SPDX-License-Identifier: Apache-2.0
//
// Sums shared by all sources of history.
#include "fleet/history/history.h"

#include <algorithm>
#include <tuple>
#include <utility>

namespace gpuwhy {

void KernelSums::add(const KernelSums& other) {
  family_key = std::min(family_key, other.family_key);
  calls.add(other.calls);
  total_ns.add(other.total_ns);
  min_ns = std::min(min_ns, other.min_ns);
  max_ns = std::max(max_ns, other.max_ns);
  for (const auto& [step, count] : other.histogram) {
    histogram[step] = saturated_sum(histogram[step], count);
  }
}

void StageSums::add(const StageSums& other) {
  instances.add(other.instances);
  total_ns.add(other.total_ns);
  tokens.add(other.tokens);
  model_flops.add(other.model_flops);
  peak_flops.add(other.peak_flops);
  model_bytes.add(other.model_bytes);
  peak_bytes.add(other.peak_bytes);
}

void sort_runs(std::vector<KnownRun>& runs) {
  std::sort(runs.begin(), runs.end(), [](const KnownRun& a, const KnownRun& b) {
    return std::tie(a.started_unix_s, a.run_id) < std::tie(b.started_unix_s, b.run_id);
  });
}

void KernelTable::add(const KernelSums& cell) {
  const auto [found, is_new] = sums_.try_emplace({cell.stage_key, cell.kernel_key}, cell);
  if (!is_new) {
    found->second.add(cell);
  }
}

std::vector<KernelSums> KernelTable::rows() const {
  std::vector<KernelSums> rows;
  rows.reserve(sums_.size());
  for (const auto& [key, sum] : sums_) {
    rows.push_back(sum);
  }
  return rows;
}

}  // namespace gpuwhy
