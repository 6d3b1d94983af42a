// SPDX-License-Identifier: Apache-2.0
//
// Explanation of a straggler: the stage and kernel in which it loses most time.
//
// Its kernels are compared with the mean of the same kernels on all other ranks: the job's sums
// minus its own. Communication is ignored, because a late rank spends the least time there.
#include <algorithm>
#include <map>

#include "fleet/merge/fleet_report.h"
#include "results/families.h"

namespace gpuwhy {

std::optional<StragglerCause> straggler_cause(const FleetSummary& fleet, const RankSummary& own) {
  std::map<KernelName, const Durations*> of_all;
  for (const FleetKernel& kernel : fleet.kernels) {
    of_all[kernel] = &kernel;
  }
  // The excess of one kernel over the time that the other ranks' mean predicts.
  struct Loss {
    const KernelSums* cell = nullptr;
    double expected_ns = 0;
    double excess_ns = 0;
  };
  std::vector<Loss> losses;
  std::map<std::string_view, double> by_stage;
  double expected_ns = 0;
  double excess_ns = 0;
  for (const KernelSums& cell : own.kernels) {
    const auto found = of_all.find(cell);
    if (cell.family == kCommunication || found == of_all.end() ||
        found->second->calls <= cell.calls) {
      continue;
    }
    const Durations& all = *found->second;
    const double mean = static_cast<double>(all.total_ns - cell.total_ns) /
                        static_cast<double>(all.calls - cell.calls);
    const double expected = mean * static_cast<double>(cell.calls);
    const double excess = static_cast<double>(cell.total_ns) - expected;
    losses.push_back({&cell, expected, excess});
    by_stage[cell.stage] += excess;
    expected_ns += expected;
    excess_ns += excess;
  }
  if (losses.empty() || expected_ns <= 0) {
    return std::nullopt;
  }
  // The stage with the largest excess, and within it the worst kernel.
  const auto stage = std::max_element(by_stage.begin(), by_stage.end(),
                                      [](auto& a, auto& b) { return a.second < b.second; });
  const Loss* worst = nullptr;
  for (const Loss& loss : losses) {
    if (loss.cell->stage == stage->first &&
        (worst == nullptr || loss.excess_ns > worst->excess_ns)) {
      worst = &loss;
    }
  }
  StragglerCause reason;
  reason.stage = worst->cell->stage;
  reason.kernel = worst->cell->kernel;
  reason.kernel_excess_ns = static_cast<std::int64_t>(std::clamp(worst->excess_ns, -9e18, 9e18));
  reason.excess_ns = static_cast<std::int64_t>(std::clamp(excess_ns, -9e18, 9e18));
  reason.kernel_ratio =
      worst->expected_ns > 0 ? static_cast<double>(worst->cell->total_ns) / worst->expected_ns : 0;
  reason.compute_ratio = 1 + excess_ns / expected_ns;
  reason.own_share_fraction = excess_ns > 0 ? worst->excess_ns / excess_ns : 0;
  // Slower clocks slow most kernels. Kernels limited by memory less, so half of the mean is enough.
  // Kernels far below the mean share are mostly noise.
  const double least_ns = 0.1 * expected_ns / static_cast<double>(losses.size());
  constexpr double kMost = 0.8;
  double compared_ns = 0;
  double slow_ns = 0;
  std::size_t num_slow = 0;
  std::size_t num_compared = 0;
  for (const Loss& loss : losses) {
    if (loss.expected_ns < least_ns) {
      continue;
    }
    ++num_compared;
    compared_ns += loss.expected_ns;
    if (loss.excess_ns / loss.expected_ns >= (reason.compute_ratio - 1) / 2) {
      ++num_slow;
      slow_ns += loss.expected_ns;
    }
  }
  reason.is_uniform = excess_ns > 0 && num_compared >= 3 && slow_ns >= kMost * compared_ns &&
                      static_cast<double>(num_slow) >= kMost * static_cast<double>(num_compared);
  return reason;
}

}  // namespace gpuwhy
