// SPDX-License-Identifier: Apache-2.0
//
// Detection of outlier ranks, nodes, GPUs and kernels in a merged job.
//
// In a job whose ranks wait for each other, the stages of all ranks take equally long, so a slow
// rank shows in its compute time, not in its wall time. Ranks are compared by compute kernels if
// most have them, or if some have and the job communicates; otherwise by stage times on the host.
// fleet/merge/collective_report.cc determines who waits for whom.
//
// What it gets wrong: ranks with different roles (pipeline stages, experts) compute different
// things and deviate without a fault.
#include "fleet/merge/fleet_report.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <tuple>

#include "base/saturated_sum.h"
#include "base/units.h"
#include "compare/statistics.h"
#include "fleet/merge/collective_report.h"
#include "fleet/merge/group_report.h"
#include "fleet/merge/late_cause.h"
#include "results/duration_histogram.h"

namespace gpuwhy {
namespace {

// Thresholds for an outlier: a few percent of noise are normal, and of a normal distribution one in
// 30,000 is beyond four deviations.
constexpr double kLeastDeviation = 0.03;
constexpr double kManyDeviations = 4;
// A rank that caused this share of all waiting is a straggler, if the job lost enough time to it:
// of ranks that differ by 1 %, one is always the slowest, and all others wait for it. Of few ranks
// each one is last now and then, so there it must have three times its turn.
constexpr double kLargeShare = 0.1;
constexpr double kLargestShare = 0.6;
constexpr double kManyTurns = 3;
constexpr double kLeastLost = 0.02;
constexpr int kStepsApart = 2;  // of an eighth of an octave: see KernelOutlier

// The value by which a stage of a rank is compared; nullopt if it has none.
std::optional<std::int64_t> measured(const RankStage& stage, bool is_by_kernels) {
  const std::int64_t value = is_by_kernels ? stage.compute_ns : stage.total_ns;
  return value > 0 && !is_nested_stage(stage.stage) ? std::optional(value) : std::nullopt;
}

// By kernels if at least half of the ranks have some. In a job whose ranks wait for each other,
// host times are the same on all ranks, so there three ranks with kernels say more than all
// without.
bool are_compared_by_kernels(const FleetSummary& fleet) {
  constexpr std::size_t kLeastRanks = 3;
  const auto with = std::count_if(fleet.ranks.begin(), fleet.ranks.end(), [](const RankRow& row) {
    return std::any_of(row.stages.begin(), row.stages.end(),
                       [](const RankStage& stage) { return stage.compute_ns > 0; });
  });
  const auto num_with = static_cast<std::size_t>(with);
  return num_with * 2 >= fleet.ranks.size() ||
         (num_with >= kLeastRanks && !fleet.collectives.empty());
}

std::vector<std::optional<double>> deviations(
    const std::vector<std::optional<std::int64_t>>& values) {
  std::vector<double> known;
  for (const auto& value : values) {
    if (value) {
      known.push_back(static_cast<double>(*value));
    }
  }
  const double median = known.empty() ? 0 : median_of(known);
  std::vector<std::optional<double>> found;
  found.reserve(values.size());
  for (const auto& value : values) {
    found.push_back(value && median > 0 ? std::optional(static_cast<double>(*value) / median - 1)
                                        : std::nullopt);
  }
  return found;
}

// How far each rank, and each stage of each rank, lies from the median of the ranks that have it.
void add_deviations(const FleetSummary& fleet, FleetReport& report) {
  const bool is_by_kernels = are_compared_by_kernels(fleet);
  report.quantity = is_by_kernels ? "compute kernels" : "stages on the host";
  std::map<std::string, std::vector<std::optional<std::int64_t>>> by_stage;
  std::vector<std::optional<std::int64_t>> own(fleet.ranks.size());
  for (std::size_t i = 0; i < fleet.ranks.size(); ++i) {
    for (const RankStage& stage : fleet.ranks[i].stages) {
      if (const auto value = measured(stage, is_by_kernels)) {
        auto& column = by_stage[stage.stage];
        column.resize(fleet.ranks.size());
        column[i] = value;
        own[i] = saturated_sum(own[i].value_or(0), *value);
      }
    }
  }
  const auto of_ranks = deviations(own);
  for (std::size_t i = 0; i < own.size(); ++i) {
    report.ranks[i].own_ns = own[i];
    report.ranks[i].deviation_fraction = of_ranks[i];
    report.num_measured += own[i] ? 1 : 0;
  }
  for (const auto& [stage, values] : by_stage) {
    report.heat.stages.push_back({stage, deviations(values)});
  }
}

// The deviation above which a member of this group is an outlier.
double outlier_from(const std::vector<double>& values) {
  return values.size() < 2 ? INFINITY
                           : std::max(kLeastDeviation, kManyDeviations * robust_deviation(values));
}

void find_stragglers(FleetReport& report) {
  std::vector<double> known;
  std::int64_t work_ns = 0;
  for (const RankVerdict& verdict : report.ranks) {
    if (verdict.deviation_fraction) {
      known.push_back(*verdict.deviation_fraction);
    }
    work_ns = saturated_sum(
        work_ns, saturated_sum(verdict.own_ns.value_or(0), verdict.collectives.total_ns));
  }
  const double limit = outlier_from(known);
  const double large =
      std::clamp(kManyTurns / static_cast<double>(std::max<std::size_t>(report.ranks.size(), 1)),
                 kLargeShare, kLargestShare);
  // What the others waited for a rank, as a share of their own time.
  const auto num_ranks = static_cast<double>(report.ranks.size());
  const auto lost_share = [&](std::int64_t blamed_ns) {
    return num_ranks > 1 ? fraction_of(blamed_ns, work_ns) * num_ranks / (num_ranks - 1) : 0;
  };
  // Two criteria: slow by itself, or blamed for much of the waiting.
  for (std::size_t i = 0; i < report.ranks.size(); ++i) {
    RankVerdict& verdict = report.ranks[i];
    verdict.is_straggler = verdict.deviation_fraction.value_or(0) > limit ||
                           (lost_share(verdict.blamed_ns) >= kLeastLost &&
                            fraction_of(verdict.blamed_ns, report.collectives.waiting_ns) >= large);
    report.stragglers.push_back(i);
  }
  std::sort(report.stragglers.begin(), report.stragglers.end(), [&](std::size_t a, std::size_t b) {
    const auto key = [&](std::size_t i) {
      const RankVerdict& verdict = report.ranks[i];
      return std::tuple(!verdict.is_straggler, -verdict.blamed_ns,
                        -verdict.deviation_fraction.value_or(0), verdict.rank);
    };
    return key(a) < key(b);
  });
}

// Groups ranks by a property and compares the medians of the groups.
template <typename Name>
std::vector<GroupSpread> spread_by(const FleetReport& report, Name name) {
  struct Members {
    std::vector<double> deviations;
    std::pair<double, std::int64_t> worst{-INFINITY, 0};
  };
  std::map<std::string, Members> groups;
  for (const RankVerdict& verdict : report.ranks) {
    if (verdict.deviation_fraction) {
      Members& members = groups[name(verdict)];
      members.deviations.push_back(*verdict.deviation_fraction);
      if (*verdict.deviation_fraction > members.worst.first) {
        members.worst = {*verdict.deviation_fraction, verdict.rank};
      }
    }
  }
  std::vector<GroupSpread> spread;
  std::vector<double> medians;
  for (const auto& [key, members] : groups) {
    medians.push_back(median_of(members.deviations));
    spread.push_back({key.empty() ? "n/a" : key, !key.empty(),
                      static_cast<std::int64_t>(members.deviations.size()), medians.back(),
                      members.worst.second, false});
  }
  const double limit = outlier_from(medians);
  for (GroupSpread& group : spread) {
    group.is_outlier = group.deviation_fraction > limit;
  }
  std::sort(spread.begin(), spread.end(), [](const GroupSpread& a, const GroupSpread& b) {
    return std::tuple(-a.deviation_fraction, a.name) < std::tuple(-b.deviation_fraction, b.name);
  });
  return spread;
}

// The histogram bin that contains the median rank.
int median_step(const std::map<int, std::int64_t>& steps, std::int64_t num) {
  std::int64_t seen = 0;
  for (const auto& [step, count] : steps) {
    seen = saturated_sum(seen, count);
    if (seen >= (num + 1) / 2) {
      return step;
    }
  }
  return 0;
}

std::optional<KernelOutlier> outlier_of(const FleetKernel& kernel) {
  std::int64_t num = 0;
  for (const auto& [step, count] : kernel.relative) {
    num = saturated_sum(num, count);
  }
  // With two ranks there is no way to say which one is the odd one.
  if (num < 3) {
    return std::nullopt;
  }
  const int middle = median_step(kernel.relative, num);
  const auto typical = static_cast<double>(bin_upper_ns(middle));
  double excess = 0;
  std::int64_t num_slow = 0;
  for (const auto& [step, count] : kernel.relative) {
    if (step >= middle + kStepsApart && typical > 0) {
      num_slow = saturated_sum(num_slow, count);
      excess +=
          static_cast<double>(count) * (static_cast<double>(bin_upper_ns(step)) / typical - 1);
    }
  }
  if (num_slow == 0) {
    return std::nullopt;
  }
  const double rank_ns =
      static_cast<double>(kernel.total_ns) / static_cast<double>(std::max<std::int64_t>(num, 1));
  return KernelOutlier{kernel.stage,
                       kernel.kernel,
                       kernel.family,
                       num,
                       num_slow,
                       kernel.total_ns / std::max<std::int64_t>(kernel.calls, 1),
                       static_cast<double>(kernel.most_relative) / typical,
                       static_cast<std::int64_t>(std::min(rank_ns * excess, 9e18)),
                       kernel.most_relative_rank};
}

// Ranks are in ascending order, so the missing ones are the gaps between neighbours. They are kept
// as ranges: a job of 10,000 ranks may lack most of them.
void find_missing(const FleetSummary& fleet, RankPresence& presence) {
  for (const RankRow& row : fleet.ranks) {
    presence.num_expected = std::max(presence.num_expected, row.identity.num_ranks);
  }
  std::int64_t next = 0;
  const auto gap = [&](std::int64_t until) {
    if (next < until) {
      presence.missing.push_back(range_text(next, until - 1));
      presence.num_missing = saturated_sum(presence.num_missing, until - next);
    }
  };
  for (const RankRow& row : fleet.ranks) {
    gap(std::min(row.identity.rank, presence.num_expected));
    next = saturated_sum(row.identity.rank, 1);
  }
  gap(presence.num_expected);
}

// What a rank says about itself, for the lists of ranks that are in trouble.
void add_presence(const RankIdentity& identity, RankPresence& presence) {
  ++presence.num_present;
  ++presence.recorded_by[identity.recorded_by.empty() ? "n/a" : identity.recorded_by];
  if (identity.exit_code != 0) {
    presence.failed.push_back({identity.rank, identity.exit_code});
  }
  if (!identity.failure.empty()) {
    presence.not_recorded.push_back({identity.rank, identity.failure});
  }
}

}  // namespace

// Order matters: stragglers need deviations and collectives.
FleetReport report_fleet(const FleetSummary& fleet) {
  FleetReport report;
  std::set<std::string> ways;
  for (const RankRow& row : fleet.ranks) {
    const RankIdentity& identity = row.identity;
    report.run_id = identity.run_id;
    report.attempt = identity.attempt;
    if (!row.communicators.empty() && !identity.communicators_by.empty()) {
      ways.insert(identity.communicators_by);
    }
    RankVerdict verdict;
    verdict.rank = identity.rank;
    verdict.node = identity.node;
    verdict.gpu = identity.gpu;
    verdict.recorded_by = identity.recorded_by;
    verdict.exit_code = identity.exit_code;
    report.ranks.push_back(std::move(verdict));
    report.heat.ranks.push_back(identity.rank);
    report.heat.nodes.push_back(identity.node);
    add_presence(identity, report.presence);
  }
  report.collectives.communicators_by.assign(ways.begin(), ways.end());
  report.presence.earlier_attempts = by_attempt(fleet.older);
  find_missing(fleet, report.presence);
  add_collectives(fleet, report);
  add_deviations(fleet, report);
  find_stragglers(report);
  add_causes(fleet, report);
  report.nodes = spread_by(report, [](const RankVerdict& verdict) { return verdict.node; });
  report.gpus = spread_by(report, [](const RankVerdict& verdict) { return verdict.gpu; });
  for (const FleetKernel& kernel : fleet.kernels) {
    if (auto outlier = outlier_of(kernel)) {
      report.kernels.push_back(std::move(*outlier));
    }
  }
  std::sort(report.kernels.begin(), report.kernels.end(),
            [](const KernelOutlier& a, const KernelOutlier& b) {
              return std::tie(b.excess_ns, a.kernel, a.stage) <
                     std::tie(a.excess_ns, b.kernel, b.stage);
            });
  report.groups = find_groups(fleet);
  report.parts = fleet.parts;
  std::stable_sort(report.parts.begin(), report.parts.end(),
                   [](const FleetPart& a, const FleetPart& b) { return a.total_ns > b.total_ns; });
  return report;
}

}  // namespace gpuwhy
