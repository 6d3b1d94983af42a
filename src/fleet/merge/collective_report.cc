// SPDX-License-Identifier: Apache-2.0
//
// Time that ranks wait in collectives, and the ranks they wait for, without a common clock.
//
// A collective ends on all ranks at about the same moment: nobody leaves before the last has
// arrived. So the rank with the shortest duration arrived last. That needs only durations, which
// each rank measures on its own clock. The shortest duration is the transfer; the rest of the other
// ranks' time is waiting for that rank.
//
// Lateness propagates: a rank that waits in a small group for its slow member is late at the next
// global collective, together with its whole group. So a rank that itself waited a lot in one group
// passes the waiting it caused in others on to the rank it waited for, and so on. Within a group
// nothing is passed on: there, the ranks that wait are each other's.
//
// A rank that waits much more in a group than all other members did not come early: it leaves late,
// because its network is slow. That needs three members; of two, one cannot tell which is odd.
//
// What it gets wrong: in a collective whose members leave at different times (a broadcast's root),
// the ones that leave early are assigned too little transfer. If communicators are only inferred
// from the order on streams, groups smaller than the job look like one group.
#include "fleet/merge/collective_report.h"

#include <algorithm>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/saturated_sum.h"
#include "compare/statistics.h"

namespace gpuwhy {
namespace {

// Prefix sums over the collectives of each communicator, to sum a rank's transfers quickly.
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

  // Adds the collectives of a rank in one communicator and returns its waiting time there.
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

// The rank that was last most often, per communicator; ties go to the lowest.
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

// Where a rank waited most.
struct LongestWait {
  std::size_t rank = 0;  // an index: the rank it waited for; itself if it waited for nobody
  std::string_view communicator = {};
  std::int64_t caused_ns = 0;  // what it caused in other communicators
};

// Waiting of one member of a communicator.
struct MemberWait {
  std::size_t rank = 0;  // an index
  std::int64_t waiting_ns = 0;
};

// Of each rank, the waiting beyond that of the typical member. A rank whose longest wait is such a
// one waited for nobody.
void find_late_leavers(const std::unordered_map<std::string, std::vector<MemberWait>>& members,
                       std::vector<LongestWait>& waited, FleetReport& report) {
  constexpr std::size_t kLeastMembers = 3;
  constexpr double kMuch = 2;  // times the typical member
  for (const auto& [communicator, waits] : members) {
    if (waits.size() < kLeastMembers) {
      continue;
    }
    std::vector<double> known;
    known.reserve(waits.size());
    for (const MemberWait& wait : waits) {
      known.push_back(static_cast<double>(wait.waiting_ns));
    }
    const double typical = median_of(known);
    for (const MemberWait& wait : waits) {
      if (static_cast<double>(wait.waiting_ns) <= kMuch * typical) {
        continue;
      }
      RankVerdict& verdict = report.ranks[wait.rank];
      verdict.network_ns =
          saturated_sum(verdict.network_ns, wait.waiting_ns - static_cast<std::int64_t>(typical));
      if (waited[wait.rank].communicator == communicator) {
        waited[wait.rank].rank = wait.rank;
      }
    }
  }
}

// Passes on the waiting caused by ranks that waited themselves to the rank they waited for.
void trace_back(const std::vector<LongestWait>& waited, FleetReport& report) {
  constexpr int kMostHops = 8;  // levels of groups within groups
  std::vector<double> waits;
  waits.reserve(report.ranks.size());
  for (const RankVerdict& verdict : report.ranks) {
    waits.push_back(static_cast<double>(verdict.collectives.waiting_ns));
  }
  const double much = waits.empty() ? 0 : median_of(waits) / 2;
  for (std::size_t i = 0; i < report.ranks.size(); ++i) {
    std::size_t origin = i;
    for (int hop = 0; hop < kMostHops && waits[origin] > 0 && waits[origin] >= much; ++hop) {
      origin = waited[origin].rank;
    }
    const auto blame = [&](std::size_t rank, std::int64_t time_ns) {
      report.ranks[rank].blamed_ns = saturated_sum(report.ranks[rank].blamed_ns, time_ns);
    };
    blame(origin, waited[i].caused_ns);
    blame(i, report.ranks[i].caused_ns - waited[i].caused_ns);
  }
}

}  // namespace

// Transfer is what all ranks together spend after the last one has arrived.
std::optional<std::int64_t> add_collective(const FleetCollective& one, GroupCollectives& sum) {
  ++sum.num;
  add_to(sum.total_ns, one.total_ns);
  if (one.num_ranks < 2) {
    add_to(sum.alone_ns, one.total_ns);
    return std::nullopt;
  }
  std::int64_t transfer_ns = 0;
  if (__builtin_mul_overflow(one.shortest_ns, one.num_ranks, &transfer_ns) ||
      transfer_ns > one.total_ns) {
    transfer_ns = one.total_ns;  // only in a manipulated file
  }
  add_to(sum.transfer_ns, transfer_ns);
  add_to(sum.waiting_ns, one.total_ns - transfer_ns);
  return one.total_ns - transfer_ns;
}

void add_collectives(const FleetSummary& fleet, FleetReport& report) {
  std::unordered_map<std::int64_t, std::size_t> places;
  for (std::size_t i = 0; i < report.ranks.size(); ++i) {
    places.emplace(report.ranks[i].rank, i);
  }
  const Transfers transfers(fleet.collectives);
  const std::unordered_map<std::string, std::int64_t> usual = usual_last(fleet);
  std::vector<LongestWait> waited(fleet.ranks.size());
  std::unordered_map<std::string, std::vector<MemberWait>> members;
  // Per rank: its time in collectives, and the rank it waited for most.
  for (std::size_t i = 0; i < fleet.ranks.size(); ++i) {
    RankVerdict& verdict = report.ranks[i];
    waited[i].rank = i;
    std::int64_t longest_ns = 0;
    for (const CommunicatorShare& share : fleet.ranks[i].communicators) {
      verdict.collectives.total_ns = saturated_sum(verdict.collectives.total_ns, share.total_ns);
      const std::int64_t waiting_ns = transfers.add(share, verdict);
      members[share.communicator].push_back({i, waiting_ns});
      const auto last = usual.find(share.communicator);
      if (waiting_ns > longest_ns && last != usual.end() && places.contains(last->second)) {
        longest_ns = waiting_ns;
        waited[i].rank = places.at(last->second);
        waited[i].communicator = share.communicator;
      }
    }
    // More than the total only occurs in a manipulated file.
    CollectiveTime& time = verdict.collectives;
    time.transfer_ns = std::min(time.transfer_ns, time.total_ns);
    time.alone_ns = std::min(time.alone_ns, time.total_ns - time.transfer_ns);
    time.waiting_ns = time.total_ns - time.transfer_ns - time.alone_ns;
  }
  find_late_leavers(members, waited, report);
  // Per collective: transfer, waiting, and the rank that caused it.
  for (const FleetCollective& one : fleet.collectives) {
    report.collectives.num_mismatched += one.kernel != one.other_kernel ? 1 : 0;
    const auto waiting_ns = add_collective(one, report.collectives);
    if (!waiting_ns) {
      ++report.collectives.num_alone;
    } else if (const auto last = places.find(one.last_rank); last != places.end()) {
      RankVerdict& verdict = report.ranks[last->second];
      ++verdict.num_last;
      add_to(verdict.caused_ns, *waiting_ns);
      if (LongestWait& wait = waited[last->second]; wait.communicator != one.communicator) {
        add_to(wait.caused_ns, *waiting_ns);
      }
    }
  }
  trace_back(waited, report);
}

}  // namespace gpuwhy
