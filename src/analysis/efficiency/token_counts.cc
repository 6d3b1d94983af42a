// SPDX-License-Identifier: Apache-2.0
//
// Tokens, sequences and context lengths of each step whose cost can be known.
//
// Where an engine's marker tells the sums over its requests, they are all that is needed. Elsewhere
// contexts are tracked through the recording: a prefill of n tokens leaves n behind, each decode
// step adds one per sequence. That is exact for a program that serves one batch at a time. An
// engine that mixes requests and does not tell their lengths needs them from the user (context), or
// decode remains n/a. Numbers of the user come before those of marks.
#include "analysis/efficiency/token_counts.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "results/stage_role.h"

namespace gpuwhy {
namespace {

// The time a step took: its period, else its GPU window, else the length of its mark. A loop keeps
// the length of its mark.
RecordedPasses recorded(const StageStep& step, const LlmWork& work) {
  const bool is_period = step.is_step && step.period_ns;
  const std::int64_t length_ns = is_period      ? *step.period_ns
                                 : step.is_step ? step.gpu_window_ns.value_or(step.duration_ns)
                                                : step.duration_ns;
  return {work, step.start_ns, length_ns, is_period, step.number};
}

// Walks the steps in time order and tracks the context of one sequence.
class Tracker {
 public:
  Tracker(const Analysis& analysis, const EfficiencySetup& setup)
      : analysis_(analysis), setup_(setup), steps_(analysis.stage_steps) {
    // Each replica serves requests of its own.
    std::ranges::stable_sort(
        steps_, {}, [](const StageStep& one) { return std::pair(one.group, one.start_ns); });
    std::erase_if(steps_, [](const StageStep& step) { return step.is_open; });
    const bool has_steps = std::ranges::any_of(
        steps_, [&](const StageStep& step) { return role(step) == StageRole::kDecodeStep; });
    decode_ = has_steps ? StageRole::kDecodeStep : StageRole::kDecode;
  }

  RecordedWork follow() {
    for (std::size_t i = 0; i < steps_.size(); ++i) {
      const StageStep& step = steps_[i];
      if (i > 0 && step.group != steps_[i - 1].group) {
        context_.reset();
        is_fresh_ = false;
        is_mixed_ = false;
      }
      if (role(step) == StageRole::kPrefill) {
        if (setup_.prompt_tokens || !add_exact(step, work_.prefill)) {
          add_prefill(step, batch_after(i));
        }
      } else if (role(step) == decode_) {
        if (setup_.context || setup_.batch || !add_exact(step, work_.decode)) {
          add_decode(step);
        }
      } else if (role(step) == StageRole::kMixed && !add_exact(step, work_.mixed)) {
        work_.mixed.reason = kNeedsSums;
      } else if (role(step) == StageRole::kVerify && !add_exact(step, work_.verify)) {
        work_.verify.reason = kNeedsSums;
      }
    }
    return std::move(work_);
  }

 private:
  StageRole role(const StageStep& step) const {
    return role_of(analysis_.stages[step.stage].stage);
  }

  std::int64_t batch_of(const StageStep& step) const {
    return setup_.batch.value_or(step.is_step ? step.tokens.value_or(1) : 1);
  }

  // Sequences of the decode step after a prefill: the mark of a prefill has the tokens of all of
  // them.
  std::int64_t batch_after(std::size_t prefill_at) const {
    for (std::size_t i = prefill_at + 1;
         i < steps_.size() && role(steps_[i]) != StageRole::kPrefill &&
         steps_[i].group == steps_[prefill_at].group;
         ++i) {
      if (role(steps_[i]) == decode_) {
        return batch_of(steps_[i]);
      }
    }
    return setup_.batch.value_or(1);
  }

  static constexpr const char* kNeedsSums =
      "needs the lengths of its requests: the engine's detailed annotations, see docs/marking.md";

  static bool add_exact(const StageStep& step, StageWork& work) {
    if (!step.counts.is_complete()) {
      return false;
    }
    work.passes.push_back(recorded(step, {}));
    work.passes.back().counts = step.counts;
    return true;
  }

  void add_prefill(const StageStep& step, std::int64_t batch) {
    // An engine prefills one request after another, and a step attends to all of them.
    is_mixed_ = is_mixed_ || (step.sequences && (is_fresh_ || *step.sequences != batch));
    const std::int64_t sequences = std::max<std::int64_t>(step.sequences.value_or(batch), 1);
    std::optional<std::int64_t> tokens = setup_.prompt_tokens;
    if (!tokens && step.tokens && *step.tokens >= sequences) {
      tokens = *step.tokens / sequences;
    }
    if (!tokens) {
      work_.prefill.reason = "needs the prompt's tokens: a payload on the mark, or --prompt-tokens";
    } else {
      work_.prefill.passes.push_back(recorded(step, prefill_work(*tokens, sequences)));
    }
    context_ = tokens;
    is_fresh_ = true;
  }

  void add_decode(const StageStep& step) {
    is_fresh_ = false;
    const std::int64_t batch = batch_of(step);
    const std::int64_t num_steps = step.is_step ? 1 : steps_of_loop(step, batch);
    if (batch < 1 || num_steps < 1) {
      work_.decode.reason = "needs the tokens made: a payload on the marks, or --new-tokens";
      return;
    }
    // Given by the user: the mean context of the whole loop. The steps grow it by one token each,
    // so half of them lie below the mean.
    std::optional<std::int64_t> cached = is_mixed_ ? std::nullopt : context_;
    if (setup_.context) {
      cached = std::max<std::int64_t>(*setup_.context - 1 - (num_steps - 1) / 2, 0);
    }
    if (!cached) {
      work_.decode.reason =
          is_mixed_ ? "requests of several lengths share the steps: give their mean with --context"
                    : "needs the context: payloads on prefill marks, --prompt-tokens or --context";
      return;
    }
    // A loop counts as one pass of num_steps tokens that starts at the cached length.
    LlmWork work = decode_work(1, batch);
    work.cached_tokens = *cached;
    work.new_tokens = num_steps;
    work_.decode.passes.push_back(recorded(step, work));
    context_ = *cached + num_steps;
  }

  std::int64_t steps_of_loop(const StageStep& step, std::int64_t batch) const {
    return setup_.new_tokens.value_or(step.tokens ? *step.tokens / std::max<std::int64_t>(batch, 1)
                                                  : 0);
  }

  const Analysis& analysis_;
  const EfficiencySetup& setup_;
  std::vector<StageStep> steps_;
  RecordedWork work_;
  StageRole decode_ = StageRole::kDecode;
  std::optional<std::int64_t> context_;  // of one sequence, after what was seen so far
  bool is_fresh_ = false;                // a prefill was seen and no step since
  bool is_mixed_ = false;
};

}  // namespace

RecordedWork recorded_work(const Analysis& analysis, const EfficiencySetup& setup) {
  return Tracker(analysis, setup).follow();
}

}  // namespace gpuwhy
