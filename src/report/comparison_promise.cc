// SPDX-License-Identifier: Apache-2.0
//
// Share of a promised saving that came true.
//
// A finding of the base says what its fix saves at most. The candidate has the fix, as far as the
// numbers tell, if the time that the finding is about went down and the step became shorter.
// Compute time is left out: findings share it.
#include <algorithm>

#include <fmt/format.h>

#include "base/cut_name.h"
#include "base/text.h"
#include "base/units.h"
#include "report/comparison_parts.h"
#include "results/stage_role.h"

namespace gpuwhy {
namespace {

// By how much the time that a finding is about fell; 0: it did not, or that is not known.
std::int64_t fall_of(const PromisedSaving& promise, const LedgerChange& ledger) {
  if (promise.bucket == Bucket::kLaunchLate) {
    for (const auto& [bucket, kinds] : ledger.kinds) {
      for (const PartChange& kind : kinds) {
        if (bucket == word_of(Bucket::kLaunchLate) &&
            kind.name == word_of(info_of(promise.id).idle)) {
          return -kind.difference_ns();
        }
      }
    }
    return 0;
  }
  if (!promise.bucket || promise.bucket == Bucket::kCompute) {
    return 0;
  }
  for (std::size_t i = 0; i < ledger.base.buckets_ns.size(); ++i) {
    if (ledger.base.buckets_ns[i].first == word_of(*promise.bucket)) {
      return ledger.base.buckets_ns[i].second - ledger.candidate.buckets_ns[i].second;
    }
  }
  return 0;
}

// " Other waiting grew instead: ..."; empty: nothing grew by a twentieth of the time.
std::string growth_sentence(const LedgerChange& ledger, std::int64_t num_steps,
                            const std::string& step) {
  std::string most;
  std::int64_t most_ns = ledger.base.window_ns / 20;
  const auto look = [&](std::int64_t difference_ns, const std::string& words) {
    if (difference_ns > most_ns) {
      most_ns = difference_ns;
      most = words;
    }
  };
  for (std::size_t i = 0; i < ledger.base.buckets_ns.size(); ++i) {
    const auto& [bucket, base_ns] = ledger.base.buckets_ns[i];
    if (bucket != "launch_late" && bucket != "compute") {
      look(ledger.candidate.buckets_ns[i].second - base_ns, bucket_in_words(bucket));
    }
  }
  for (const auto& [bucket, kinds] : ledger.kinds) {
    for (const PartChange& kind : kinds) {
      if (bucket == "launch_late") {
        look(kind.difference_ns(), kind_in_words(kind.name));
      }
    }
  }
  return most.empty() ? ""
                      : fmt::format(
                            " Other waiting grew instead, most of all \"{}\" by {} per {}: "
                            "look there next.",
                            most, format_duration_ns(most_ns / num_steps), step);
}

}  // namespace

std::string promise_sentence(const Comparison& comparison) {
  constexpr double kLeastFall = 0.5;   // of the saving: less may have other causes
  constexpr double kLeastGain = 0.01;  // of the step
  const MetricChange* gate = first_gate(comparison);
  if (gate == nullptr || gate->unit != "ns" || comparison.verdict == Decision::kInvalid ||
      comparison.pace || has_fact(comparison, "instances")) {
    return "";
  }
  const RowName stage = stage_of_metric(gate->key);
  // A promise is a mean over all steps, and so is what it is compared with, where there is one.
  const bool has_means = comparison.steps && comparison.steps->stage == stage;
  const double gain_ns = has_means
                             ? comparison.steps->base_mean_ns - comparison.steps->candidate_mean_ns
                             : *gate->base * (1 - *gate->ratio);
  if (stage.kind == RowKind::kRecording || gain_ns < kLeastGain * *gate->base) {
    return "";
  }
  const PromisedSaving* kept = nullptr;
  const LedgerChange* where = nullptr;
  std::int64_t most_ns = 0;
  for (const PromisedSaving& promise : comparison.promises) {
    for (const LedgerChange& ledger : comparison.ledgers) {
      const bool is_same = ledger.base.stage == stage && promise.stage == stage &&
                           ledger.base.device == promise.device && promise.num_steps > 0;
      const std::int64_t fall_ns = is_same ? fall_of(promise, ledger) : 0;
      if (fall_ns > most_ns &&
          static_cast<double>(fall_ns) >= kLeastFall * static_cast<double>(promise.saving_ns)) {
        kept = &promise;
        where = &ledger;
        most_ns = fall_ns;
      }
    }
  }
  if (kept == nullptr) {
    return "";
  }
  const double promised_ns =
      static_cast<double>(kept->saving_ns) / static_cast<double>(kept->num_steps);
  const std::string name =
      role_of(stage) == StageRole::kDecode ? "decode step" : printable_name(stage.text());
  const double share = gain_ns / promised_ns;
  return fmt::format(
      "The base promised up to {} per {} for \"{}\". That time fell by {} per {}, and a {} is {} "
      "shorter{}: {}.{}",
      format_duration_ns(static_cast<std::int64_t>(promised_ns)), name, info_of(kept->id).problem,
      format_duration_ns(most_ns / kept->num_steps), name, name,
      format_duration_ns(static_cast<std::int64_t>(gain_ns)), has_means ? " on average" : "",
      share > 1 ? "more than was promised, so something else changed too"
                : fmt::format("{:.0f} % of the promise", share * 100),
      share > 1 ? "" : growth_sentence(*where, kept->num_steps, name));
}

}  // namespace gpuwhy
