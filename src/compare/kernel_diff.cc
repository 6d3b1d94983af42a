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
#include <functional>
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

// Empty where the sizes of some launches are not known, as of rows that were merged.
std::vector<ShapeRow> sizes_of(const KernelRow& row) {
  std::int64_t calls = 0;
  for (const ShapeRow& one : row.by_shape) {
    calls += one.calls;
  }
  return calls == row.calls ? row.by_shape : std::vector<ShapeRow>();
}

// A kernel that runs in two sizes gets longer on average if more of the large ones run. That is
// another number of launches, not another duration, so each size is split by itself.
void split_difference(KernelChange& change) {
  std::vector<ShapeRow> base = sizes_of(change.base);
  std::vector<ShapeRow> candidate = sizes_of(change.candidate);
  if (base.empty() || candidate.empty()) {
    base = {{change.base, ""}};
    candidate = {{change.candidate, ""}};
  }
  const auto by_shape = [](const ShapeRow& row) { return row.shape; };
  for_each_pair(summed_by(base, by_shape), summed_by(candidate, by_shape),
                [&](const std::string&, const ShapeRow* before, const ShapeRow* after) {
                  const ShapeRow none;
                  change.calls_ns += worth_of_calls(before == nullptr ? none : *before,
                                                    after == nullptr ? none : *after);
                });
  change.duration_ns = change.difference_ns() - change.calls_ns;
}

// How much the launch counts of two kernels differ; 0 if equal.
double unlikeness(const KernelRow& a, const KernelRow& b) {
  return std::abs(std::log(static_cast<double>(std::max<std::int64_t>(a.calls, 1)) /
                           static_cast<double>(std::max<std::int64_t>(b.calls, 1))));
}

bool may_swap(const KernelRow& gone, const KernelRow& come) {
  if (gone.stage != come.stage || gone.device != come.device || gone.family != come.family) {
    return false;
  }
  // Kernels of unknown family must have been launched equally often.
  constexpr double kMostUnlike = 0.7;  // twice as often
  return gone.family == "other" ? gone.calls == come.calls : unlikeness(gone, come) <= kMostUnlike;
}

KernelChange change_of(KernelChange::Kind kind, const KernelRow& base, const KernelRow& candidate) {
  KernelChange change;
  change.kind = kind;
  change.base = base;
  change.candidate = candidate;
  return change;
}

// Pairs kernels that disappeared with new ones, the most similar first.
void pair_swaps(std::vector<KernelRow> gone, std::vector<KernelRow> come,
                std::vector<KernelChange>& changes) {
  struct Candidate {
    double distance;
    std::size_t from;
    std::size_t to;
  };
  // Among equals, large goes with large.
  std::ranges::stable_sort(gone, std::greater<>(), &KernelRow::total_ns);
  std::ranges::stable_sort(come, std::greater<>(), &KernelRow::total_ns);
  std::vector<Candidate> candidates;
  // With this many changed names, no pairing is credible.
  constexpr std::size_t kMostPaired = 500;
  const bool may_pair = gone.size() <= kMostPaired && come.size() <= kMostPaired;
  for (std::size_t i = 0; may_pair && i < gone.size(); ++i) {
    for (std::size_t k = 0; k < come.size(); ++k) {
      if (may_swap(gone[i], come[k])) {
        candidates.push_back({unlikeness(gone[i], come[k]), i, k});
      }
    }
  }
  std::ranges::stable_sort(candidates, {}, &Candidate::distance);
  std::vector<bool> is_gone_taken(gone.size());
  std::vector<bool> is_come_taken(come.size());
  for (const Candidate& pair : candidates) {
    if (!is_gone_taken[pair.from] && !is_come_taken[pair.to]) {
      is_gone_taken[pair.from] = true;
      is_come_taken[pair.to] = true;
      changes.push_back(change_of(KernelChange::Kind::kSwapped, gone[pair.from], come[pair.to]));
    }
  }
  for (std::size_t i = 0; i < gone.size(); ++i) {
    if (!is_gone_taken[i]) {
      changes.push_back(change_of(KernelChange::Kind::kGone, gone[i], none_of(gone[i])));
    }
  }
  for (std::size_t k = 0; k < come.size(); ++k) {
    if (!is_come_taken[k]) {
      changes.push_back(change_of(KernelChange::Kind::kNew, none_of(come[k]), come[k]));
    }
  }
}

std::vector<KernelChange> kernel_changes(const RunSummary& base, const RunSummary& candidate) {
  const auto key_of = [](const KernelRow& row) {
    return std::tuple(row.stage, row.device, row.kernel_name);
  };
  std::vector<KernelChange> changes;
  std::vector<KernelRow> gone;
  std::vector<KernelRow> come;
  for_each_pair(summed_by(base.kernels, key_of), summed_by(candidate.kernels, key_of),
                [&](const auto&, const KernelRow* before, const KernelRow* after) {
                  if (before != nullptr && after != nullptr) {
                    changes.push_back(change_of(KernelChange::Kind::kSame, *before, *after));
                  } else {
                    (after == nullptr ? gone : come).push_back(after == nullptr ? *before : *after);
                  }
                });
  pair_swaps(std::move(gone), std::move(come), changes);
  for (KernelChange& change : changes) {
    split_difference(change);
  }
  sort_by_difference(changes);
  return changes;
}

// In the order of their names, in which rows of equal difference are listed.
constexpr IdleKind kKindsByName[] = {
    IdleKind::kAllocating, IdleKind::kBlocked, IdleKind::kFirstUse, IdleKind::kHostWork,
    IdleKind::kLaunching,  IdleKind::kNotHost, IdleKind::kWaiting};

std::set<std::string> devices_of(const RunSummary& run) {
  std::set<std::string> devices;
  for (const LedgerRow& row : run.ledgers) {
    devices.insert(row.device);
  }
  return devices;
}

// The range or operator that has more than half of the time of a kind; empty: none has.
std::string main_scope(const std::vector<IdleRow>& rows, IdleKind kind, std::int64_t whole_ns) {
  std::map<std::string, std::int64_t> by_scope;
  for (const IdleRow& row : rows) {
    if (row.kind == kind && !row.scope.empty() &&
        (by_scope[row.scope] += row.total_ns) > whole_ns / 2) {
      return row.scope;
    }
  }
  return "";
}

// The causes of one bucket of a ledger, by kind.
std::vector<KindChange> kinds_of(Bucket bucket, const LedgerChange& ledger, const RunSummary& base,
                                 const RunSummary& candidate) {
  const auto rows_of = [&](const RunSummary& run, const LedgerRow& of) {
    std::vector<IdleRow> rows;
    std::ranges::copy_if(run.idle, std::back_inserter(rows), [&](const IdleRow& row) {
      return row.bucket == bucket && row.stage == of.stage && row.device == of.device;
    });
    return rows;
  };
  const std::vector<IdleRow> before = rows_of(base, ledger.base);
  const std::vector<IdleRow> after = rows_of(candidate, ledger.candidate);
  std::vector<KindChange> kinds;
  for (const IdleKind kind : kKindsByName) {
    const auto sum_of = [&](const std::vector<IdleRow>& rows) {
      std::optional<std::int64_t> sum_ns;
      for (const IdleRow& row : rows) {
        sum_ns = row.kind == kind ? sum_ns.value_or(0) + row.total_ns : sum_ns;
      }
      return sum_ns;
    };
    const auto base_ns = sum_of(before);
    const auto candidate_ns = sum_of(after);
    if (base_ns || candidate_ns) {
      KindChange& change =
          kinds.emplace_back(KindChange{{base_ns.value_or(0), candidate_ns.value_or(0)}, kind, ""});
      change.mostly = change.difference_ns() < 0 ? main_scope(before, kind, change.base_ns)
                                                 : main_scope(after, kind, change.candidate_ns);
    }
  }
  sort_by_difference(kinds);
  return kinds;
}

// GPUs are matched by name. One GPU on each side is the same one, whatever its number.
std::vector<LedgerChange> ledger_changes(const RunSummary& base, const RunSummary& candidate) {
  const bool has_one_each = devices_of(base).size() == 1 && devices_of(candidate).size() == 1;
  std::vector<LedgerChange> changes;
  for (const LedgerRow& before : base.ledgers) {
    const auto after = std::ranges::find_if(candidate.ledgers, [&](const LedgerRow& row) {
      return row.stage == before.stage && (has_one_each || row.device == before.device);
    });
    if (after != candidate.ledgers.end()) {
      LedgerChange& change = changes.emplace_back(LedgerChange{before, *after});
      for (const Bucket bucket : buckets_by_name()) {
        change.kinds[static_cast<std::size_t>(bucket)] = kinds_of(bucket, change, base, candidate);
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

void diff_runs(const RunSummary& base, const RunSummary& candidate, Comparison& comparison) {
  comparison.pace = pace_change(base, candidate);
  comparison.promises = base.promises;
  comparison.ledgers = ledger_changes(base, candidate);
  comparison.ledgers_missing = comparison.ledgers.empty() ? why_no_ledgers(base, candidate) : "";
  comparison.moved_waits = moved_waits(comparison.ledgers);
  comparison.stages = breakdown_by(base.kernels, candidate.kernels,
                                   [](const KernelRow& kernel) { return kernel.stage.text(); });
  comparison.families = breakdown_by(base.kernels, candidate.kernels,
                                     [](const KernelRow& kernel) { return kernel.family; });
  comparison.kernels = kernel_changes(base, candidate);
  comparison.kernel_time = {base.kernel_ns, candidate.kernel_ns};
  comparison.operators = operator_changes(base, candidate);
  comparison.model = model_changes(base, candidate);
}

}  // namespace gpuwhy
