// SPDX-License-Identifier: Apache-2.0
//
// Time to first token and time per output token.
//
// Time per output token is the period of consecutive decode steps in the steady window. The length
// of a mark is used only where the host waits for the GPU inside it: an engine that runs ahead of
// the GPU closes its mark long before the work is done. Time to first token ends when both the mark
// of the prefill and its GPU work have ended.
#include "analysis/efficiency/latencies.h"

#include <algorithm>
#include <map>
#include <vector>

#include "analysis/analysis.h"
#include "base/median.h"
#include "base/sort_runs.h"
#include "base/units.h"
#include "results/stage_role.h"

namespace gpuwhy {
namespace {

constexpr const char* kNoGpuWork = "length of the mark on the host: no GPU work was recorded";

void set_times(const StageTimes& times, Latency& latency) {
  latency.n = times.n;
  latency.mean_ns = times.mean_ns;
  latency.std_ns = times.std_ns;
  latency.p50_ns = times.p50_ns;
  latency.p99_ns = times.p99_ns;
}

// The finished steps of one stage, in time order.
std::vector<const StageStep*> steps_in(const Analysis& analysis, StageRole role) {
  std::vector<const StageStep*> steps;
  for (const StageStep& step : analysis.stage_steps) {
    if (role_of(analysis.stages[step.stage].stage) == role && !step.is_open) {
      steps.push_back(&step);
    }
  }
  sort_runs(steps,
            [](const StageStep* a, const StageStep* b) { return a->start_ns < b->start_ns; });
  return steps;
}

// Decode steps, or loops of them where no step is marked.
std::vector<const StageStep*> decode_steps(const Analysis& analysis) {
  std::vector<const StageStep*> steps = steps_in(analysis, StageRole::kDecodeStep);
  return steps.empty() ? steps_in(analysis, StageRole::kDecode) : steps;
}

// Whether marks are at least as long as the GPU work launched in them. Then the host waited.
bool marks_cover_work(const std::vector<const StageStep*>& steps) {
  std::vector<std::int64_t> marks;
  std::vector<std::int64_t> work;
  for (const StageStep* step : steps) {
    if (step->gpu_work_ns) {
      marks.push_back(step->duration_ns);
      work.push_back(*step->gpu_work_ns);
    }
  }
  return work.empty() || *lower_median(std::move(marks)) >= *lower_median(std::move(work));
}

// Whether GPU work of the stage is missing from the recording: launches waited for work that is not
// there, as in a first step that follows one before the recording.
bool misses_work(const Analysis& analysis, StageRole role) {
  constexpr double kMostMissing = 0.10;  // of a window
  return std::any_of(analysis.ledgers.begin(), analysis.ledgers.end(), [&](const LedgerRow& row) {
    const std::int64_t waiting_ns = row[Bucket::kUnrecorded] - row.lead_ns;
    return role_of(row.stage) == role && fraction_of(waiting_ns, row.window_ns) > kMostMissing;
  });
}

Latency time_to_first_token(const Analysis& analysis,
                            const std::vector<const StageStep*>& prefills) {
  Latency latency;
  if (misses_work(analysis, StageRole::kPrefill)) {
    latency.reason =
        "part of the prefill has no recorded GPU activity: most likely an earlier step was still "
        "running";
    return latency;
  }
  std::vector<std::int64_t> durations;
  bool has_work = false;
  for (const StageStep* step : prefills) {
    if (step->gpu_start_ns) {
      durations.push_back(
          std::max(step->duration_ns, *step->gpu_start_ns + *step->gpu_window_ns - step->start_ns));
      has_work = true;
    }
  }
  if (!has_work) {
    for (const StageStep* step : prefills) {
      durations.push_back(step->duration_ns);
    }
  }
  if (durations.empty()) {
    latency.reason = "no stage prefill was marked";
    return latency;
  }
  latency.basis =
      has_work ? "from the start of a prefill mark to its end or that of its GPU work" : kNoGpuWork;
  set_times(times_of_durations(std::move(durations)), latency);
  return latency;
}

// Loops without marks of their steps: their length over the steps that their tokens tell.
Latency time_per_token_of_loops(const std::vector<const StageStep*>& loops) {
  Latency latency;
  std::vector<std::int64_t> durations;
  for (const StageStep* loop : loops) {
    const std::int64_t num_steps =
        loop->tokens.value_or(0) / std::max<std::int64_t>(loop->sequences.value_or(1), 1);
    if (num_steps > 0) {
      const std::int64_t gpu_ns =
          loop->gpu_start_ns ? *loop->gpu_start_ns + *loop->gpu_window_ns - loop->start_ns : 0;
      durations.push_back(std::max(loop->duration_ns, gpu_ns) / num_steps);
    }
  }
  if (durations.empty()) {
    latency.reason = "decode is marked as a whole, without the number of its tokens";
    return latency;
  }
  latency.basis = "length of a decode loop over its tokens";
  set_times(times_of_durations(std::move(durations)), latency);
  return latency;
}

Latency time_per_token(const Analysis& analysis, const std::vector<const StageStep*>& steps) {
  Latency latency;
  if (steps.empty()) {
    latency.reason = "no decode step was marked";
    return latency;
  }
  if (!steps.front()->is_step) {
    return time_per_token_of_loops(steps);
  }
  std::vector<std::int64_t> periods;
  std::vector<std::int64_t> work;
  bool has_work = false;
  for (const StageStep* step : steps) {
    has_work = has_work || step->gpu_work_ns;
    if (step->is_steady && step->is_before_same && step->period_ns) {
      periods.push_back(*step->period_ns);
      work.push_back(*step->gpu_work_ns);
    }
  }
  if (!has_work) {
    for (const StageStep* step : steps) {
      periods.push_back(step->duration_ns);
    }
    latency.basis = kNoGpuWork;
  } else if (periods.empty()) {
    latency.reason = "no two decode steps follow each other: a step alone has no period";
    return latency;
  } else if (*lower_median(periods) < *lower_median(std::move(work))) {
    latency.reason = "decode steps overlap on the GPU, so their distance is not a latency";
    return latency;
  } else {
    latency.basis = "period on the GPU of " + analysis.steady_window;
  }
  set_times(times_of_durations(std::move(periods)), latency);
  return latency;
}

// Tokens of the steady steps over their periods, summed over replicas.
std::optional<double> rate_of(const std::vector<const StageStep*>& steps) {
  std::map<std::uint32_t, std::pair<std::int64_t, std::int64_t>> by_group;  // tokens, time
  for (const StageStep* step : steps) {
    const bool has_gpu = step->gpu_work_ns.has_value();
    const bool counts = !has_gpu || !step->is_step || (step->is_steady && step->is_before_same);
    const std::int64_t time_ns =
        has_gpu && step->is_step ? step->period_ns.value_or(0) : step->duration_ns;
    if (counts && step->tokens && time_ns > 0) {
      by_group[step->group].first += *step->tokens;
      by_group[step->group].second += time_ns;
    }
  }
  std::optional<double> rate;
  for (const auto& [group, sums] : by_group) {
    rate =
        rate.value_or(0) + static_cast<double>(sums.first) * 1e9 / static_cast<double>(sums.second);
  }
  return rate;
}

const StageTimes* row_of(const std::vector<StageTimes>& times, StageRole role) {
  const auto row = std::find_if(times.begin(), times.end(), [&](const StageTimes& t) {
    return role_of(t.stage) == role && t.n > 0;
  });
  return row == times.end() ? nullptr : &*row;
}

Latency latency_of_marks(const StageTimes* times, const char* reason) {
  Latency latency;
  if (times == nullptr) {
    latency.reason = reason;
  } else {
    set_times(*times, latency);
    latency.basis = "length of the mark on the host, without a profiler";
  }
  return latency;
}

}  // namespace

Latencies latencies_of(const Analysis& analysis) {
  const std::vector<const StageStep*> prefills = steps_in(analysis, StageRole::kPrefill);
  const std::vector<const StageStep*> steps = decode_steps(analysis);
  Latencies result;
  std::vector<std::int64_t> sequences;
  for (const StageStep* step : steps) {
    if (step->is_step && step->sequences) {
      sequences.push_back(*step->sequences);
    }
  }
  result.decode_sequences = lower_median(std::move(sequences));
  const bool has_baseline =
      analysis.baseline && marks_cover_work(steps) && marks_cover_work(prefills);
  if (has_baseline) {
    const StageTimes* step = row_of(*analysis.baseline, StageRole::kDecodeStep);
    step = step == nullptr ? row_of(*analysis.baseline, StageRole::kDecode) : step;
    result.source = "the pass without a profiler";
    result.ttft = latency_of_marks(row_of(*analysis.baseline, StageRole::kPrefill),
                                   "no stage prefill was marked");
    result.tpot = latency_of_marks(step, "no decode step was marked");
    result.decode_tokens_per_s = step == nullptr ? std::nullopt : step->tokens_per_s;
    return result;
  }
  if (!analysis.stage_times.empty()) {
    result.source = "the recording";
  }
  result.ttft = time_to_first_token(analysis, prefills);
  result.tpot = time_per_token(analysis, steps);
  if (result.tpot.reason.empty() || (!steps.empty() && !steps.front()->is_step)) {
    result.decode_tokens_per_s = rate_of(steps);
  }
  return result;
}

}  // namespace gpuwhy
