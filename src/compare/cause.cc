// SPDX-License-Identifier: Apache-2.0
//
// The cause of a change, and the share of a promised saving that came true.
//
// The time of a stage is the sum of its buckets, so the buckets that changed most are the cause, if
// they are most of the change. Where they are not, nothing is said.
//
// A finding of the base says what its fix saves at most. The candidate has the fix, as far as the
// numbers tell, if the time that the finding is about went down and the step became shorter.
// Compute time is left out: findings share it.
#include "compare/cause.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>

#include "base/cut_name.h"
#include "results/stage_role.h"

namespace gpuwhy {
namespace {

// The GPU whose time in the stage changed most.
const LedgerChange* ledger_of(const Comparison& comparison, const RowName& stage) {
  const LedgerChange* found = nullptr;
  for (const LedgerChange& row : comparison.ledgers) {
    if (row.base.stage == stage &&
        (found == nullptr || std::abs(row.difference_ns()) > std::abs(found->difference_ns()))) {
      found = &row;
    }
  }
  return found;
}

// The family that has most of a change of the compute time.
std::optional<PartChange> main_family(const Comparison& comparison, std::int64_t difference_ns) {
  if (comparison.families.empty() || difference_ns == 0) {
    return std::nullopt;
  }
  const PartChange& family = comparison.families.front();
  const double share =
      static_cast<double>(family.difference_ns()) / static_cast<double>(difference_ns);
  return share < 0.5 || share > 1.5 ? std::nullopt : std::optional(family);
}

// Buckets of a ledger; waiting for the CPU by what the CPU did.
std::vector<CausePart> parts_of(const Comparison& comparison, const LedgerChange& ledger) {
  std::vector<CausePart> parts;
  for (const Bucket bucket : buckets_by_name()) {
    std::int64_t rest_ns = ledger.difference_ns(bucket);
    if (bucket == Bucket::kLaunchLate) {
      for (const KindChange& kind : ledger.kinds_of(bucket)) {
        parts.push_back({kind.difference_ns(), bucket, kind.kind, kind.mostly});
        rest_ns -= kind.difference_ns();
      }
    }
    parts.push_back({rest_ns, bucket});
    if (bucket == Bucket::kCompute) {
      parts.back().family = main_family(comparison, rest_ns);
    }
  }
  return parts;
}

// Keeps the largest parts, as few as explain most of the whole; false if three do not.
bool keep_largest(std::vector<CausePart>& parts, std::int64_t whole_ns) {
  constexpr std::size_t kMost = 3;
  constexpr double kEnough = 0.2;  // not explained
  constexpr double kTooMuch = 0.4;
  std::ranges::stable_sort(parts, std::greater<>(),
                           [](const CausePart& part) { return std::abs(part.difference_ns); });
  std::int64_t rest_ns = whole_ns;
  const auto is_rest_above = [&](double share) {
    return std::abs(static_cast<double>(rest_ns)) > share * std::abs(static_cast<double>(whole_ns));
  };
  std::size_t kept = 0;
  for (; kept < std::min(parts.size(), kMost) && is_rest_above(kEnough); ++kept) {
    rest_ns -= parts[kept].difference_ns;
  }
  parts.resize(kept);
  return !parts.empty() && !is_rest_above(kTooMuch);
}

// Of recordings of equal length: what took more of the time, and what less.
std::optional<Cause> cause_of_pace(const Comparison& comparison) {
  Cause cause;
  cause.of = Cause::Of::kPace;
  for (const Bucket bucket : buckets_by_name()) {
    cause.parts.push_back({0, bucket});
  }
  for (const LedgerChange& ledger : comparison.ledgers) {
    if (ledger.base.stage.kind == RowKind::kRecording) {
      ++cause.num_gpus;
      cause.base_ns += ledger.base.window_ns;
      for (CausePart& part : cause.parts) {
        part.difference_ns += ledger.difference_ns(*part.bucket);
      }
    }
  }
  std::erase_if(cause.parts, [&](const CausePart& part) {
    return part.difference_ns == 0 || std::abs(part.difference_ns) * 100 < cause.base_ns;
  });
  std::ranges::stable_sort(cause.parts, std::greater<>(), &CausePart::difference_ns);
  const bool is_moved = !cause.parts.empty() && cause.parts.front().difference_ns > 0 &&
                        cause.parts.back().difference_ns < 0;
  return is_moved ? std::optional(cause) : std::nullopt;
}

// A change that a reader would call one, and that has the direction of what decides.
bool is_like(const MetricChange& gate, std::int64_t base_ns, std::int64_t difference_ns) {
  constexpr double kLeast = 0.01;
  const auto change = static_cast<double>(difference_ns);
  const bool is_longer = (*gate.ratio > 1) != gate.is_larger_better;
  return std::abs(change) >= kLeast * static_cast<double>(base_ns) && (change > 0) == is_longer &&
         std::abs(*gate.ratio - 1) >= kLeast;
}

// Operators whatever their stage and shape.
Cause parts_of_operators(const OperatorComparison& operators) {
  std::map<std::string, std::int64_t> by_name;
  for (const OperatorChange& row : operators.rows) {
    by_name[cut_name(row.base.name)] += row.difference_ns();
  }
  Cause cause;
  cause.of = Cause::Of::kOperators;
  cause.base_ns = operators.base_ns;
  cause.difference_ns = operators.candidate_ns - operators.base_ns;
  for (const auto& [name, difference_ns] : by_name) {
    cause.parts.push_back({difference_ns, {}, {}, name});
  }
  return cause;
}

// By how much the time that a finding is about fell; 0: it did not, or that is not known.
std::int64_t fall_of(const PromisedSaving& promise, const LedgerChange& ledger) {
  if (promise.bucket != Bucket::kLaunchLate) {
    return promise.bucket && promise.bucket != Bucket::kCompute
               ? -ledger.difference_ns(*promise.bucket)
               : 0;
  }
  for (const KindChange& kind : ledger.kinds_of(*promise.bucket)) {
    if (kind.kind == info_of(promise.id).idle) {
      return -kind.difference_ns();
    }
  }
  return 0;
}

// Other waiting that grew most; nullopt: nothing grew by a twentieth of the time.
std::optional<CausePart> growth_of(const LedgerChange& ledger) {
  CausePart most{ledger.base.window_ns / 20};
  const auto look = [&](const CausePart& part) {
    most = part.difference_ns > most.difference_ns ? part : most;
  };
  for (const Bucket bucket : buckets_by_name()) {
    if (bucket != Bucket::kLaunchLate && bucket != Bucket::kCompute) {
      look({ledger.difference_ns(bucket), bucket});
    }
  }
  for (const KindChange& kind : ledger.kinds_of(Bucket::kLaunchLate)) {
    look({kind.difference_ns(), Bucket::kLaunchLate, kind.kind});
  }
  return most.bucket ? std::optional(most) : std::nullopt;
}

}  // namespace

const MetricChange* first_gate(const Comparison& comparison) {
  const auto row = std::ranges::find_if(comparison.metrics, [](const MetricChange& one) {
    return one.is_gated && one.ratio && one.base && one.candidate;
  });
  return row == comparison.metrics.end() ? nullptr : &*row;
}

bool has_fact(const Comparison& comparison, std::string_view name) {
  return std::ranges::count(comparison.facts, name, &FactDifference::fact) > 0;
}

std::optional<Cause> cause_of(const Comparison& comparison) {
  if (comparison.pace && !has_failed_run(comparison)) {
    return cause_of_pace(comparison);
  }
  const MetricChange* gate = first_gate(comparison);
  // Where the sides did other amounts of work, a total does not tell the cause.
  if (gate == nullptr || comparison.verdict == Decision::kInvalid ||
      has_fact(comparison, "instances")) {
    return std::nullopt;
  }
  const LedgerChange* ledger = ledger_of(comparison, gate->stage);
  if (ledger == nullptr && role_of(gate->stage) == StageRole::kDecode) {
    ledger = ledger_of(comparison, row_name("decode_step"));
  }
  Cause cause;
  if (ledger != nullptr) {
    cause.parts = parts_of(comparison, *ledger);
    cause.base_ns = ledger->base.window_ns;
    cause.difference_ns = ledger->difference_ns();
    cause.stage = gate->stage;
    cause.device = ledger->base.device;
  } else if (comparison.ledgers.empty() && !comparison.operators.rows.empty()) {
    cause = parts_of_operators(comparison.operators);
  }
  return is_like(*gate, cause.base_ns, cause.difference_ns) &&
                 keep_largest(cause.parts, cause.difference_ns)
             ? std::optional(cause)
             : std::nullopt;
}

std::optional<KeptPromise> kept_promise(const Comparison& comparison) {
  constexpr double kLeastFall = 0.5;   // of the saving: less may have other causes
  constexpr double kLeastGain = 0.01;  // of the step
  const MetricChange* gate = first_gate(comparison);
  if (gate == nullptr || gate->unit != "ns" || gate->stage.kind == RowKind::kRecording ||
      comparison.verdict == Decision::kInvalid || comparison.pace ||
      has_fact(comparison, "instances")) {
    return std::nullopt;
  }
  KeptPromise kept;
  kept.stage = gate->stage;
  // A promise is a mean over all steps, and so is what it is compared with, where there is one.
  kept.has_means = comparison.steps && comparison.steps->stage == gate->stage;
  kept.gain_ns = kept.has_means
                     ? comparison.steps->base_mean_ns - comparison.steps->candidate_mean_ns
                     : *gate->base * (1 - *gate->ratio);
  if (kept.gain_ns < kLeastGain * *gate->base) {
    return std::nullopt;
  }
  const LedgerChange* where = nullptr;
  for (const PromisedSaving& promise : comparison.promises) {
    for (const LedgerChange& ledger : comparison.ledgers) {
      const bool is_same = ledger.base.stage == gate->stage && promise.stage == gate->stage &&
                           ledger.base.device == promise.device && promise.num_steps > 0;
      const std::int64_t fall_ns = is_same ? fall_of(promise, ledger) : 0;
      if (fall_ns > kept.fall_ns &&
          static_cast<double>(fall_ns) >= kLeastFall * static_cast<double>(promise.saving_ns)) {
        kept.promise = promise;
        kept.fall_ns = fall_ns;
        where = &ledger;
      }
    }
  }
  if (where == nullptr) {
    return std::nullopt;
  }
  kept.promised_ns =
      static_cast<double>(kept.promise.saving_ns) / static_cast<double>(kept.promise.num_steps);
  kept.growth = growth_of(*where);
  return kept;
}

std::optional<TimedWork> timed_work(const Comparison& comparison) {
  const MetricChange* gate = first_gate(comparison);
  if (gate == nullptr || gate->unit != "ns") {
    return std::nullopt;
  }
  const bool is_run = gate->key == kProgramKey || gate->key == kLengthKey;
  if (gate->stage.kind == RowKind::kRecording && !is_run) {
    return std::nullopt;
  }
  constexpr double kNs = 1e-9;
  // Steps are paid for by their sum, which a median does not tell.
  if (comparison.steps && comparison.steps->stage == gate->stage) {
    return TimedWork{gate->stage, comparison.steps->base_mean_ns * kNs,
                     comparison.steps->candidate_mean_ns * kNs, true};
  }
  // The change that is printed, which is not that of the medians.
  return TimedWork{gate->stage, *gate->base * kNs, *gate->base * *gate->ratio * kNs};
}

}  // namespace gpuwhy
