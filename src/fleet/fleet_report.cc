// SPDX-License-Identifier: Apache-2.0
//
// Who is late, when no two ranks share a clock?
//
// A collective ends for all ranks at about the same moment: nobody leaves before the last has come.
// So whoever spent the least time in it came last, and that needs durations only, which each rank
// measures on its own clock. The least time is what the transfer takes; everything beyond it the
// other ranks waited, and they waited for that rank.
//
// In a job that waits like this the stages of all ranks take the same time, so a slow rank shows in
// its compute, not in its wall time: ranks are compared by compute kernels where most have them,
// and by the host's stage times else.
//
// Lateness travels: whoever waits in a small group for its slow member is late at the next
// collective of all, together with the whole group. So a rank that waited much itself hands what it
// caused to the rank it waited for, and that one on in turn.
//
// What it gets wrong: ranks of different roles (pipeline stages, experts) compute different things
// and deviate without fault. A collective whose members leave at different times (a broadcast's
// root) gives its early leavers too little transfer. Where communicators are told by the order on
// streams alone, groups smaller than the job are taken for one.
#include "fleet/fleet_report.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <tuple>
#include <unordered_map>

#include "analysis/duration_steps.h"
#include "analysis/rules.h"
#include "analysis/statistics.h"
#include "base/units.h"
#include "fleet/saturated_sum.h"

namespace llmprof {
namespace {

// A rank or a node stands out from these on: noise of a few percent is everywhere, and a normal
// spread leaves one of 30,000 beyond four deviations.
constexpr double kLeastDeviation = 0.03;
constexpr double kManyDeviations = 4;
// And a rank for which others waited this share of all waiting, where waiting is worth a look.
constexpr double kLargeShare = 0.1;
constexpr double kLeastWaiting = 0.01;
constexpr int kStepsApart = 2;  // of an eighth of an octave: see KernelOutlier

bool is_nested(const std::string& stage) {
  return stage == "decode_step";
}

double ratio(std::int64_t part, std::int64_t whole) {
  return fraction_of(part, whole);
}

// Prefix sums of the collectives of each communicator, to sum the transfers of a rank.
class Transfers {
 public:
  explicit Transfers(const std::vector<FleetCollective>& collectives) {
    for (const FleetCollective& one : collectives) {
      Series& series = series_[one.communicator];
      const bool is_alone = one.num_ranks < 2;
      series.sequences.push_back(one.sequence);
      series.transfer_ns.push_back(
          saturated_sum(last(series.transfer_ns), is_alone ? 0 : one.shortest_ns));
      series.alone_ns.push_back(saturated_sum(last(series.alone_ns), is_alone ? one.total_ns : 0));
      series.num_met.push_back(last(series.num_met) + (is_alone ? 0 : 1));
    }
  }

  // Returns what the rank waited in it.
  std::int64_t add(const CommunicatorShare& share, RankVerdict& verdict) const {
    const auto found = series_.find(share.communicator);
    if (found == series_.end()) {
      return 0;
    }
    std::int64_t waiting_ns = share.total_ns;
    const Series& series = found->second;
    for (const auto& [first, count] : share.sequences) {
      const std::size_t from = series.place(first);
      const std::size_t to = series.place(saturated_sum(first, count));
      CollectiveTime& time = verdict.collectives;
      const std::int64_t transfer_ns = between(series.transfer_ns, from, to);
      const std::int64_t alone_ns = between(series.alone_ns, from, to);
      time.transfer_ns = saturated_sum(time.transfer_ns, transfer_ns);
      time.alone_ns = saturated_sum(time.alone_ns, alone_ns);
      verdict.num_met += between(series.num_met, from, to);
      waiting_ns -= std::min(waiting_ns, saturated_sum(transfer_ns, alone_ns));
    }
    return waiting_ns;
  }

 private:
  struct Series {
    std::vector<std::int64_t> sequences;
    std::vector<std::int64_t> transfer_ns;
    std::vector<std::int64_t> alone_ns;
    std::vector<std::int64_t> num_met;

    std::size_t place(std::int64_t sequence) const {
      return static_cast<std::size_t>(
          std::lower_bound(sequences.begin(), sequences.end(), sequence) - sequences.begin());
    }
  };
  static std::int64_t last(const std::vector<std::int64_t>& sums) {
    return sums.empty() ? 0 : sums.back();
  }
  static std::int64_t between(const std::vector<std::int64_t>& sums, std::size_t from,
                              std::size_t to) {
    const std::int64_t before = from == 0 ? 0 : sums[from - 1];
    return to <= from ? 0 : sums[to - 1] - before;
  }

  std::unordered_map<std::string, Series> series_;
};

// The rank that was last most often, by communicator; ties to the lowest.
std::unordered_map<std::string, std::int64_t> usual_last(const FleetSummary& fleet) {
  std::unordered_map<std::string, std::map<std::int64_t, std::int64_t>> counts;
  for (const FleetCollective& one : fleet.collectives) {
    if (one.num_ranks >= 2) {
      ++counts[one.communicator][one.last_rank];
    }
  }
  std::unordered_map<std::string, std::int64_t> usual;
  for (const auto& [communicator, ranks] : counts) {
    usual[communicator] = std::max_element(ranks.begin(), ranks.end(), [](auto& a, auto& b) {
                            return a.second < b.second;
                          })->first;
  }
  return usual;
}

// Hands on what ranks caused that waited themselves, to whom they waited for (`waited_for`, by
// place; itself where there is nobody).
void trace_back(const std::vector<std::size_t>& waited_for, FleetReport& report) {
  constexpr int kMostHops = 8;  // levels of groups within groups
  std::vector<double> waits;
  for (const RankVerdict& verdict : report.ranks) {
    waits.push_back(static_cast<double>(verdict.collectives.waiting_ns));
  }
  const double much = waits.empty() ? 0 : median_of(waits) / 2;
  for (std::size_t i = 0; i < report.ranks.size(); ++i) {
    std::size_t origin = i;
    for (int hop = 0; hop < kMostHops && waits[origin] > 0 && waits[origin] >= much; ++hop) {
      origin = waited_for[origin];
    }
    RankVerdict& verdict = report.ranks[origin];
    verdict.blamed_ns = saturated_sum(verdict.blamed_ns, report.ranks[i].caused_ns);
  }
}

void add_collectives(const FleetSummary& fleet, FleetReport& report) {
  std::unordered_map<std::int64_t, std::size_t> places;
  for (std::size_t i = 0; i < report.ranks.size(); ++i) {
    places.emplace(report.ranks[i].rank, i);
  }
  const Transfers transfers(fleet.collectives);
  const std::unordered_map<std::string, std::int64_t> usual = usual_last(fleet);
  std::vector<std::size_t> waited_for(fleet.ranks.size());
  for (std::size_t i = 0; i < fleet.ranks.size(); ++i) {
    RankVerdict& verdict = report.ranks[i];
    waited_for[i] = i;
    std::int64_t longest_ns = 0;
    for (const CommunicatorShare& share : fleet.ranks[i].communicators) {
      verdict.collectives.total_ns = saturated_sum(verdict.collectives.total_ns, share.total_ns);
      const std::int64_t waiting_ns = transfers.add(share, verdict);
      const auto last = usual.find(share.communicator);
      if (waiting_ns > longest_ns && last != usual.end() && places.contains(last->second)) {
        longest_ns = waiting_ns;
        waited_for[i] = places.at(last->second);
      }
    }
    // Beyond the total only in a stranger's file.
    CollectiveTime& time = verdict.collectives;
    time.transfer_ns = std::min(time.transfer_ns, time.total_ns);
    time.alone_ns = std::min(time.alone_ns, time.total_ns - time.transfer_ns);
    time.waiting_ns = time.total_ns - time.transfer_ns - time.alone_ns;
  }
  report.num_collectives = static_cast<std::int64_t>(fleet.collectives.size());
  for (const FleetCollective& one : fleet.collectives) {
    CollectiveTime& sum = report.collectives;
    sum.total_ns = saturated_sum(sum.total_ns, one.total_ns);
    report.num_mismatched += one.kernel != one.other_kernel ? 1 : 0;
    if (one.num_ranks < 2) {
      ++report.num_alone;
      sum.alone_ns = saturated_sum(sum.alone_ns, one.total_ns);
      continue;
    }
    std::int64_t transfer_ns = 0;
    if (__builtin_mul_overflow(one.shortest_ns, one.num_ranks, &transfer_ns) ||
        transfer_ns > one.total_ns) {
      transfer_ns = one.total_ns;  // only a stranger's file says so
    }
    sum.transfer_ns = saturated_sum(sum.transfer_ns, transfer_ns);
    sum.waiting_ns = saturated_sum(sum.waiting_ns, one.total_ns - transfer_ns);
    if (const auto last = places.find(one.last_rank); last != places.end()) {
      RankVerdict& verdict = report.ranks[last->second];
      ++verdict.num_last;
      verdict.caused_ns = saturated_sum(verdict.caused_ns, one.total_ns - transfer_ns);
    }
  }
  trace_back(waited_for, report);
}

// What ranks are compared by, of one of their stages; nothing where it has none.
std::optional<std::int64_t> measured(const RankStage& stage, bool is_by_kernels) {
  const std::int64_t value = is_by_kernels ? stage.compute_ns : stage.total_ns;
  return value > 0 && !is_nested(stage.stage) ? std::optional(value) : std::nullopt;
}

bool most_have_kernels(const FleetSummary& fleet) {
  const auto with = std::count_if(fleet.ranks.begin(), fleet.ranks.end(), [](const RankRow& row) {
    return std::any_of(row.stages.begin(), row.stages.end(),
                       [](const RankStage& stage) { return stage.compute_ns > 0; });
  });
  return static_cast<std::size_t>(with) * 2 >= fleet.ranks.size();
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
  for (const auto& value : values) {
    found.push_back(value && median > 0 ? std::optional(static_cast<double>(*value) / median - 1)
                                        : std::nullopt);
  }
  return found;
}

void add_deviations(const FleetSummary& fleet, FleetReport& report) {
  const bool is_by_kernels = most_have_kernels(fleet);
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
  }
  for (const auto& [stage, values] : by_stage) {
    report.stages.push_back({stage, deviations(values)});
  }
}

// From which deviation on a member of these stands out.
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
  const bool matters = ratio(report.collectives.waiting_ns, work_ns) >= kLeastWaiting;
  for (std::size_t i = 0; i < report.ranks.size(); ++i) {
    RankVerdict& verdict = report.ranks[i];
    verdict.is_straggler =
        verdict.deviation_fraction.value_or(0) > limit ||
        (matters && ratio(verdict.blamed_ns, report.collectives.waiting_ns) >= kLargeShare);
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
    spread.push_back({key.empty() ? "n/a" : key,
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

// The step below which half of the ranks lie.
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
  // Of two ranks nobody can say which one is the odd one.
  if (num < 3) {
    return std::nullopt;
  }
  const int middle = median_step(kernel.relative, num);
  const auto typical = static_cast<double>(last_of(middle));
  double excess = 0;
  std::int64_t num_slow = 0;
  for (const auto& [step, count] : kernel.relative) {
    if (step >= middle + kStepsApart && typical > 0) {
      num_slow = saturated_sum(num_slow, count);
      excess += static_cast<double>(count) * (static_cast<double>(last_of(step)) / typical - 1);
    }
  }
  if (num_slow == 0) {
    return std::nullopt;
  }
  const double rank_ns = static_cast<double>(kernel.sum.total_ns) /
                         static_cast<double>(std::max<std::int64_t>(num, 1));
  return KernelOutlier{kernel.sum.stage,
                       kernel.sum.kernel,
                       kernel.sum.family,
                       num,
                       num_slow,
                       kernel.sum.total_ns / std::max<std::int64_t>(kernel.sum.calls, 1),
                       static_cast<double>(kernel.most_relative) / typical,
                       static_cast<std::int64_t>(std::min(rank_ns * excess, 9e18)),
                       kernel.most_relative_rank};
}

void find_missing(const FleetSummary& fleet, FleetReport& report) {
  for (const RankRow& row : fleet.ranks) {
    report.num_expected = std::max(report.num_expected, row.identity.num_ranks);
  }
  std::int64_t next = 0;
  const auto gap = [&](std::int64_t until) {
    if (next < until) {
      report.missing.emplace_back(next, until - 1);
      report.num_missing = saturated_sum(report.num_missing, until - next);
    }
  };
  for (const RankRow& row : fleet.ranks) {
    gap(std::min(row.identity.rank, report.num_expected));
    next = saturated_sum(row.identity.rank, 1);
  }
  gap(report.num_expected);
}

}  // namespace

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
  }
  report.communicators_by.assign(ways.begin(), ways.end());
  report.older = fleet.older;
  find_missing(fleet, report);
  add_collectives(fleet, report);
  add_deviations(fleet, report);
  find_stragglers(report);
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
  return report;
}

std::optional<LateReason> late_reason(const FleetSummary& fleet, const RankSummary& own) {
  std::map<std::tuple<std::string_view, std::string_view, std::string_view>, const FleetKernel*>
      cells;
  for (const FleetKernel& kernel : fleet.kernels) {
    cells[{kernel.sum.stage, kernel.sum.kernel, kernel.sum.family}] = &kernel;
  }
  struct Loss {
    const KernelCell* cell = nullptr;
    double expected_ns = 0;
    double excess_ns = 0;
  };
  std::vector<Loss> losses;
  std::map<std::string_view, double> by_stage;
  double expected_ns = 0;
  double excess_ns = 0;
  for (const KernelCell& cell : own.kernels) {
    const auto found = cells.find({cell.stage, cell.kernel, cell.family});
    if (cell.family == kCommunication || found == cells.end() ||
        found->second->sum.calls <= cell.calls) {
      continue;
    }
    const KernelCell& all = found->second->sum;
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
  const auto stage = std::max_element(by_stage.begin(), by_stage.end(),
                                      [](auto& a, auto& b) { return a.second < b.second; });
  const Loss* worst = nullptr;
  for (const Loss& loss : losses) {
    if (loss.cell->stage == stage->first &&
        (worst == nullptr || loss.excess_ns > worst->excess_ns)) {
      worst = &loss;
    }
  }
  LateReason reason;
  reason.stage = worst->cell->stage;
  reason.kernel = worst->cell->kernel;
  reason.kernel_excess_ns = static_cast<std::int64_t>(std::clamp(worst->excess_ns, -9e18, 9e18));
  reason.excess_ns = static_cast<std::int64_t>(std::clamp(excess_ns, -9e18, 9e18));
  reason.kernel_ratio =
      worst->expected_ns > 0 ? static_cast<double>(worst->cell->total_ns) / worst->expected_ns : 0;
  reason.compute_ratio = 1 + excess_ns / expected_ns;
  reason.own_share_fraction = excess_ns > 0 ? worst->excess_ns / excess_ns : 0;
  return reason;
}

}  // namespace llmprof
