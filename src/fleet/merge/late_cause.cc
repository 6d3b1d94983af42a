// SPDX-License-Identifier: Apache-2.0
//
// Cause of a rank's lateness: which part of its ledger is longer than that of the median rank.
//
// A late rank spends its time somewhere. Its ledger says where: compute, copies, waiting for the
// CPU. Communication is left out, because a late rank spends the least time there, with one
// exception: a rank that leaves collectives after all other members has a slow network, and comes
// late to the next one for that reason. The part with the largest excess is the cause, unless it
// explains too little of what the job lost.
//
// What it gets wrong: ranks with other work than the median rank (pipeline stages) have other
// ledgers without a fault. Clocks are never read: kernels that are all slower by about the same
// factor are taken as a sign of them.
#include "fleet/merge/late_cause.h"

#include <algorithm>
#include <array>

#include "base/saturated_sum.h"
#include "base/units.h"
#include "compare/statistics.h"
#include "results/stage_role.h"

namespace gpuwhy {
namespace {

// A cause must explain this share of what the job lost to the rank.
constexpr double kLeastExplained = 0.2;
// A rank with this share of all waiting is the one that others wait for.
constexpr double kPinnedShare = 0.5;
constexpr double kLeastWaitingShare = 0.01;

// Parts of a rank's ledger over its stages; nullopt if it has none.
std::optional<LateParts> parts_of(const RankRow& row) {
  LateParts parts;
  bool has_ledger = false;
  const auto add = [](std::int64_t& sum, const RankStage& stage, Bucket bucket) {
    sum = saturated_sum(sum, stage.buckets_ns[static_cast<std::size_t>(bucket)]);
  };
  for (const RankStage& stage : row.stages) {
    if (is_nested_stage(stage.stage) || stage.window_ns == 0) {
      continue;
    }
    has_ledger = true;
    add(parts.compute_ns, stage, Bucket::kCompute);
    add(parts.copy_ns, stage, Bucket::kCopy);
    for (const Bucket bucket : {Bucket::kLaunchLate, Bucket::kSync, Bucket::kUnknownIdle}) {
      add(parts.host_ns, stage, bucket);
    }
  }
  return has_ledger ? std::optional(parts) : std::nullopt;
}

using PartMember = std::int64_t LateParts::*;
struct NamedPart {
  PartMember member;
  LateCause cause;
};
constexpr std::array<NamedPart, 4> kParts = {{{&LateParts::compute_ns, LateCause::kKernels},
                                              {&LateParts::host_ns, LateCause::kHost},
                                              {&LateParts::copy_ns, LateCause::kCopies},
                                              {&LateParts::network_ns, LateCause::kNetwork}}};

// Waiting that is small against all work is neither pinned nor rotating, nor is that for the
// slowest of ranks that are all alike.
void find_lateness(FleetReport& report) {
  std::int64_t most_ns = 0;
  std::int64_t work_ns = 0;
  bool is_straggler = false;  // the one that most is blamed on
  for (const RankVerdict& verdict : report.ranks) {
    if (verdict.blamed_ns > most_ns) {
      most_ns = verdict.blamed_ns;
      is_straggler = verdict.is_straggler;
    }
    work_ns = saturated_sum(
        work_ns, saturated_sum(verdict.own_ns.value_or(0), verdict.collectives.total_ns));
  }
  const std::int64_t waiting_ns = report.collectives.waiting_ns;
  if (waiting_ns > 0 && fraction_of(waiting_ns, work_ns) >= kLeastWaitingShare) {
    report.lateness = fraction_of(most_ns, waiting_ns) < kPinnedShare
                          ? FleetReport::Lateness::kRotating
                      : is_straggler ? FleetReport::Lateness::kPinned
                                     : FleetReport::Lateness::kLittle;
  }
}

}  // namespace

bool is_nested_stage(std::string_view stage) {
  return role_of(row_name(stage)) == StageRole::kDecodeStep;
}

void add_causes(const FleetSummary& fleet, FleetReport& report) {
  find_lateness(report);
  const auto num_others = static_cast<std::int64_t>(report.ranks.size()) - 1;
  bool has_straggler = false;
  for (RankVerdict& verdict : report.ranks) {
    verdict.lost_ns = num_others > 0 ? verdict.blamed_ns / num_others : 0;
    has_straggler = has_straggler || verdict.is_straggler;
  }
  if (!has_straggler) {
    return;
  }
  std::vector<std::optional<LateParts>> parts;
  parts.reserve(fleet.ranks.size());
  std::array<std::vector<double>, kParts.size()> known;
  for (std::size_t i = 0; i < fleet.ranks.size(); ++i) {
    parts.push_back(parts_of(fleet.ranks[i]));
    if (parts[i]) {
      parts[i]->network_ns = report.ranks[i].network_ns;
      for (std::size_t part = 0; part < kParts.size(); ++part) {
        known[part].push_back(static_cast<double>((*parts[i]).*kParts[part].member));
      }
    }
  }
  std::array<std::int64_t, kParts.size()> medians{};
  for (std::size_t part = 0; part < kParts.size(); ++part) {
    medians[part] = known[part].empty() ? 0 : static_cast<std::int64_t>(median_of(known[part]));
  }
  // From here on, parts are what a straggler has more than the median rank.
  for (std::size_t i = 0; i < report.ranks.size(); ++i) {
    RankVerdict& verdict = report.ranks[i];
    if (!verdict.is_straggler || !parts[i]) {
      continue;
    }
    std::int64_t most_ns = 0;
    LateCause cause = LateCause::kUnknown;
    for (std::size_t part = 0; part < kParts.size(); ++part) {
      std::int64_t& excess_ns = (*parts[i]).*kParts[part].member;
      excess_ns -= medians[part];
      if (excess_ns > most_ns) {
        most_ns = excess_ns;
        cause = kParts[part].cause;
      }
    }
    const bool is_enough =
        static_cast<double>(most_ns) >= kLeastExplained * static_cast<double>(verdict.lost_ns);
    verdict.cause = is_enough ? cause : LateCause::kUnknown;
    verdict.parts = parts[i];
  }
}

void explain_straggler(const FleetSummary& fleet, const RankSummary& own, RankVerdict& verdict) {
  const auto reason = straggler_cause(fleet, own);
  if (!reason) {
    verdict.reason.absent = "no kernels to compare";
    return;
  }
  verdict.reason = *reason;
  constexpr double kAsFast = 1.02;
  // Without a ledger, kernels are all there is to compare.
  if (!verdict.parts && verdict.reason.compute_ratio >= kAsFast) {
    verdict.cause = LateCause::kKernels;
  }
  if (verdict.cause == LateCause::kKernels) {
    verdict.cause = verdict.reason.is_uniform ? LateCause::kClocks : LateCause::kKernel;
  }
}

}  // namespace gpuwhy
