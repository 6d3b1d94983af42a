// SPDX-License-Identifier: Apache-2.0
//
// Attribution of the difference between two runs to kernels and ledger buckets.
//
// Two runs, one of each side, row by row: each bucket of the ledger, each kernel. Differences in
// whole nanoseconds sum exactly to the total difference. A kernel whose name changed is not a loss
// and a gain: within one stage, device and family, a kernel that disappeared and a new one become
// one row if they were launched about equally often.
//
// What this gets wrong: two unrelated kernels of a family that are exchanged by chance become one
// row. Both names are shown, and the sum is right either way. The order of launches, which would
// decide, is not in a summary.
#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <set>
#include <tuple>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "compare/breakdown.h"
#include "compare/compare.h"

namespace gpuwhy {
namespace {

using KernelMap = std::map<std::tuple<RowName, std::string, std::string>, KernelAmount>;

// By stage, device and name; equal rows are merged.
KernelMap kernels_by_name(const RunSummary& run) {
  KernelMap kernels;
  for (const KernelAmount& kernel : run.kernels) {
    const auto [row, is_new] =
        kernels.try_emplace({kernel.stage, kernel.device, kernel.name}, kernel);
    if (!is_new) {
      row->second.total_ns += kernel.total_ns;
      row->second.calls += kernel.calls;
      row->second.by_shape.clear();  // of a part only
    }
  }
  return kernels;
}

// A kernel that runs in two sizes gets longer on average if more of the large ones run. That is
// another number of launches, not another duration, so each size is split by itself.
void split_difference(KernelChange& change) {
  struct Sides {
    ShapeAmount base;
    ShapeAmount candidate;
  };
  std::map<std::string, Sides> shapes;
  if (!change.base.by_shape.empty() && !change.candidate.by_shape.empty()) {
    for (const ShapeAmount& one : change.base.by_shape) {
      shapes[one.shape].base = one;
    }
    for (const ShapeAmount& one : change.candidate.by_shape) {
      shapes[one.shape].candidate = one;
    }
  } else {
    shapes[""] = {{"", change.base.total_ns, change.base.calls},
                  {"", change.candidate.total_ns, change.candidate.calls}};
  }
  change.launches_ns = 0;
  for (const auto& [shape, sides] : shapes) {
    change.launches_ns += worth_of_calls(sides.base.total_ns, sides.base.calls,
                                         sides.candidate.total_ns, sides.candidate.calls);
  }
  change.duration_ns = change.difference_ns() - change.launches_ns;
}

// How much the launch counts of two kernels differ; 0 if equal.
double unlikeness(const KernelAmount& a, const KernelAmount& b) {
  return std::abs(std::log(static_cast<double>(std::max<std::int64_t>(a.calls, 1)) /
                           static_cast<double>(std::max<std::int64_t>(b.calls, 1))));
}

bool may_swap(const KernelAmount& gone, const KernelAmount& come) {
  if (gone.stage != come.stage || gone.device != come.device || gone.family != come.family) {
    return false;
  }
  // Kernels of unknown family must have been launched equally often.
  constexpr double kMostUnlike = 0.7;  // twice as often
  return gone.family == "other" ? gone.calls == come.calls : unlikeness(gone, come) <= kMostUnlike;
}

// Pairs kernels that disappeared with new ones, the most similar first.
void pair_swaps(std::vector<KernelAmount> gone, std::vector<KernelAmount> come,
                std::vector<KernelChange>& changes) {
  struct Candidate {
    double distance;
    std::size_t from;
    std::size_t to;
  };
  std::vector<Candidate> candidates;
  for (std::size_t i = 0; i < gone.size(); ++i) {
    for (std::size_t k = 0; k < come.size(); ++k) {
      if (may_swap(gone[i], come[k])) {
        candidates.push_back({unlikeness(gone[i], come[k]), i, k});
      }
    }
  }
  // Both lists are by total time: among equals, large goes with large.
  std::stable_sort(candidates.begin(), candidates.end(),
                   [](const Candidate& a, const Candidate& b) { return a.distance < b.distance; });
  std::vector<bool> is_gone_taken(gone.size());
  std::vector<bool> is_come_taken(come.size());
  for (const Candidate& pair : candidates) {
    if (!is_gone_taken[pair.from] && !is_come_taken[pair.to]) {
      is_gone_taken[pair.from] = true;
      is_come_taken[pair.to] = true;
      changes.push_back(
          {KernelChange::Kind::kSwapped, gone[pair.from], come[pair.to], 0, 0, {}, {}, false});
    }
  }
  for (std::size_t i = 0; i < gone.size(); ++i) {
    if (!is_gone_taken[i]) {
      KernelAmount none = gone[i];
      none.total_ns = none.calls = 0;
      none.by_shape.clear();
      changes.push_back({KernelChange::Kind::kGone, gone[i], none, 0, 0, {}, {}, false});
    }
  }
  for (std::size_t k = 0; k < come.size(); ++k) {
    if (!is_come_taken[k]) {
      KernelAmount none = come[k];
      none.total_ns = none.calls = 0;
      none.by_shape.clear();
      changes.push_back({KernelChange::Kind::kNew, none, come[k], 0, 0, {}, {}, false});
    }
  }
}

std::vector<KernelChange> kernel_changes(const RunSummary& base, const RunSummary& candidate) {
  const KernelMap before = kernels_by_name(base);
  KernelMap after = kernels_by_name(candidate);
  std::vector<KernelChange> changes;
  std::vector<KernelAmount> gone;
  for (const auto& [key, kernel] : before) {
    const auto other = after.find(key);
    if (other == after.end()) {
      gone.push_back(kernel);
      continue;
    }
    changes.push_back({KernelChange::Kind::kSame, kernel, other->second, 0, 0, {}, {}, false});
    after.erase(other);
  }
  std::vector<KernelAmount> come;
  for (const auto& [key, kernel] : after) {
    come.push_back(kernel);
  }
  const auto by_time = [](const KernelAmount& a, const KernelAmount& b) {
    return a.total_ns > b.total_ns;
  };
  std::stable_sort(gone.begin(), gone.end(), by_time);
  std::stable_sort(come.begin(), come.end(), by_time);
  // With this many changed names, no pairing is credible.
  constexpr std::size_t kMostPaired = 500;
  const bool is_paired = gone.size() <= kMostPaired && come.size() <= kMostPaired;
  if (is_paired) {
    pair_swaps(std::move(gone), std::move(come), changes);
  } else {
    pair_swaps(std::move(gone), {}, changes);
    pair_swaps({}, std::move(come), changes);
  }
  for (KernelChange& change : changes) {
    split_difference(change);
  }
  std::stable_sort(changes.begin(), changes.end(),
                   [](const KernelChange& a, const KernelChange& b) {
                     return std::abs(a.difference_ns()) > std::abs(b.difference_ns());
                   });
  return changes;
}

std::set<std::string> devices_of(const RunSummary& run) {
  std::set<std::string> devices;
  for (const LedgerAmount& row : run.ledgers) {
    devices.insert(row.device);
  }
  return devices;
}

// The range or operator that has more than half of the time of a kind; empty: none has.
std::string main_scope(const std::vector<IdleAmount>& rows, const std::string& kind,
                       std::int64_t whole_ns) {
  std::map<std::string, std::int64_t> by_scope;
  for (const IdleAmount& row : rows) {
    if (row.kind == kind && !row.scope.empty() &&
        (by_scope[row.scope] += row.total_ns) > whole_ns / 2) {
      return row.scope;
    }
  }
  return "";
}

// The causes of one bucket of a ledger, by kind.
std::vector<PartChange> kinds_of(const std::string& bucket, const LedgerChange& ledger,
                                 const RunSummary& base, const RunSummary& candidate) {
  const auto rows_of = [&](const RunSummary& run, const LedgerAmount& of) {
    std::vector<IdleAmount> rows;
    std::ranges::copy_if(run.idle, std::back_inserter(rows), [&](const IdleAmount& row) {
      return row.bucket == bucket && row.stage == of.stage && row.device == of.device;
    });
    return rows;
  };
  const std::vector<IdleAmount> before = rows_of(base, ledger.base);
  const std::vector<IdleAmount> after = rows_of(candidate, ledger.candidate);
  std::vector<PartChange> kinds =
      breakdown_by(before, after, [](const IdleAmount& row) { return row.kind; });
  for (PartChange& kind : kinds) {
    kind.mostly = kind.difference_ns() < 0 ? main_scope(before, kind.name, kind.base_ns)
                                           : main_scope(after, kind.name, kind.candidate_ns);
  }
  return kinds;
}

// GPUs are matched by name. One GPU on each side is the same one, whatever its number.
std::vector<LedgerChange> ledger_changes(const RunSummary& base, const RunSummary& candidate) {
  const bool has_one_each = devices_of(base).size() == 1 && devices_of(candidate).size() == 1;
  std::vector<LedgerChange> changes;
  for (const LedgerAmount& before : base.ledgers) {
    const auto after = std::find_if(
        candidate.ledgers.begin(), candidate.ledgers.end(), [&](const LedgerAmount& row) {
          return row.stage == before.stage && (has_one_each || row.device == before.device);
        });
    if (after == candidate.ledgers.end()) {
      continue;
    }
    LedgerChange& change = changes.emplace_back(LedgerChange{before, *after});
    // The same buckets on both sides, in the same order.
    const auto fill = [](const LedgerAmount& from, LedgerAmount& to) {
      for (const auto& bucket : from.buckets_ns) {
        if (std::none_of(to.buckets_ns.begin(), to.buckets_ns.end(),
                         [&](const auto& one) { return one.first == bucket.first; })) {
          to.buckets_ns.emplace_back(bucket.first, 0);
        }
      }
    };
    fill(change.candidate, change.base);
    fill(change.base, change.candidate);
    std::sort(change.base.buckets_ns.begin(), change.base.buckets_ns.end());
    std::sort(change.candidate.buckets_ns.begin(), change.candidate.buckets_ns.end());
    for (const auto& [bucket, time_ns] : change.base.buckets_ns) {
      if (std::vector<PartChange> kinds = kinds_of(bucket, change, base, candidate);
          !kinds.empty()) {
        change.kinds.emplace_back(bucket, std::move(kinds));
      }
    }
  }
  return changes;
}

std::string why_no_ledgers(const RunSummary& base, const RunSummary& candidate) {
  if (base.ledgers.empty() || candidate.ledgers.empty()) {
    return "no GPU activity with times on both sides";
  }
  return fmt::format("the sides have no GPU of the same name: {} and {}",
                     fmt::join(devices_of(base), ", "), fmt::join(devices_of(candidate), ", "));
}

}  // namespace

const char* kind_name(KernelChange::Kind kind) {
  switch (kind) {
    case KernelChange::Kind::kSame:
      return "same kernel";
    case KernelChange::Kind::kSwapped:
      return "swapped";
    case KernelChange::Kind::kGone:
      return "gone";
    case KernelChange::Kind::kNew:
      return "new";
  }
  return "";
}

std::int64_t worth_of_calls(std::int64_t base_ns, std::int64_t base_calls,
                            std::int64_t candidate_ns, std::int64_t candidate_calls) {
  if (base_calls <= 0 || candidate_calls <= 0) {
    return candidate_ns - base_ns;
  }
  // Untrusted counts may be anything: stay far from the limits of integers.
  constexpr double kLargest = 4e18;
  const double mean = static_cast<double>(base_ns) / static_cast<double>(base_calls);
  const double more = static_cast<double>(candidate_calls) - static_cast<double>(base_calls);
  return std::llround(std::clamp(more * mean, -kLargest, kLargest));
}

void diff_runs(const RunSummary& base, const RunSummary& candidate, Comparison& comparison) {
  comparison.pace = pace_change(base, candidate);
  comparison.promises = base.promises;
  comparison.ledgers = ledger_changes(base, candidate);
  comparison.ledgers_missing = comparison.ledgers.empty() ? why_no_ledgers(base, candidate) : "";
  comparison.moved_waits = moved_waits(comparison.ledgers);
  comparison.stages = breakdown_by(base.kernels, candidate.kernels,
                                   [](const KernelAmount& kernel) { return kernel.stage.text(); });
  comparison.families = breakdown_by(base.kernels, candidate.kernels,
                                     [](const KernelAmount& kernel) { return kernel.family; });
  comparison.kernels = kernel_changes(base, candidate);
  comparison.base_kernel_ns = base.kernel_ns;
  comparison.candidate_kernel_ns = candidate.kernel_ns;
  comparison.operators = operator_changes(base, candidate);
  comparison.model = model_changes(base, candidate);
}

}  // namespace gpuwhy
