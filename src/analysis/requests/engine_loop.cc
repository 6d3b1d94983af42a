// SPDX-License-Identifier: Apache-2.0
//
// One sequence of steps from the steps of a recording.
//
// An engine runs ahead of the GPU, so marks of steps overlap the GPU work of earlier ones. A step
// here begins when its mark opens or the step before is done on the GPU, and ends with its last GPU
// work. Steps then do not overlap, and every moment lies in one step or between two.
//
// Replicas each have a loop of their own, and no request says which one served it: such recordings
// are refused.
#include "analysis/requests/engine_loop.h"

#include <algorithm>
#include <set>
#include <tuple>

#include <fmt/format.h>

#include "results/stage_role.h"

namespace gpuwhy {
namespace {

// Steps that serve no requests.
bool is_serving(const RowName& stage) {
  const StageRole role = role_of(stage);
  return role != StageRole::kGraphCapture && role != StageRole::kIdle && role != StageRole::kDraft;
}

LoopStep loop_step(const StageStep& step) {
  LoopStep made;
  made.begin_ns = step.start_ns;
  made.end_ns = step.start_ns + step.duration_ns;
  if (step.gpu_start_ns) {
    made.begin_ns = std::min(step.start_ns, *step.gpu_start_ns);
    made.end_ns = *step.gpu_start_ns + *step.gpu_window_ns;
    made.busy_ns = *step.gpu_work_ns;
  }
  made.sequences = step.sequences.value_or(-1);
  const PhaseCounts& context = step.counts.context;
  if (context.queries) {
    made.context_tokens = *context.queries;
    made.context_requests = context.requests;
  }
  return made;
}

// Makes every step begin no earlier than the one before ends.
void separate(EngineLoop& loop) {
  std::int64_t reach_ns = INT64_MIN;
  std::int64_t sum_ns = 0;
  for (LoopStep& step : loop.steps) {
    step.begin_ns = std::max(step.begin_ns, reach_ns);
    step.end_ns = std::max(step.end_ns, step.begin_ns);
    step.busy_ns = std::min(step.busy_ns, step.length_ns());
    loop.has_gpu_work = loop.has_gpu_work || step.busy_ns > 0;
    reach_ns = step.end_ns;
    loop.length_before_ns.push_back(sum_ns);
    sum_ns += step.length_ns();
  }
}

}  // namespace

std::int64_t EngineLoop::time_in_steps(std::int64_t from_ns, std::int64_t to_ns) const {
  const auto before = [&](std::int64_t time_ns) -> std::int64_t {
    const auto next = std::ranges::upper_bound(steps, time_ns, {}, &LoopStep::begin_ns);
    if (next == steps.begin()) {
      return 0;
    }
    const auto row = static_cast<std::size_t>(next - steps.begin()) - 1;
    return length_before_ns[row] + std::min(time_ns, steps[row].end_ns) - steps[row].begin_ns;
  };
  return to_ns > from_ns ? before(to_ns) - before(from_ns) : 0;
}

std::uint32_t EngineLoop::last_ended(std::int64_t time_ns) const {
  const auto next = std::ranges::upper_bound(steps, time_ns, {}, &LoopStep::end_ns);
  return next == steps.begin() ? kNone : static_cast<std::uint32_t>(next - steps.begin()) - 1;
}

std::uint32_t EngineLoop::first_begun(std::int64_t time_ns) const {
  const auto found = std::ranges::lower_bound(steps, time_ns, {}, &LoopStep::begin_ns);
  return static_cast<std::uint32_t>(found - steps.begin());
}

EngineLoop find_engine_loop(const Trace& trace, const Stages& stages, const Analysis& analysis) {
  EngineLoop loop;
  std::vector<const StageStep*> order;
  std::set<std::uint32_t> groups;
  for (const StageStep& step : analysis.stage_steps) {
    if (step.is_step && !step.is_open && step.stage < stages.names.size() &&
        is_serving(stages.names[step.stage])) {
      order.push_back(&step);
      groups.insert(step.group);
    }
  }
  if (order.empty()) {
    loop.reason = "no step of an engine is marked in the recording";
    return loop;
  }
  if (groups.size() > 1) {
    loop.reason = fmt::format(
        "the recording has {} replicas of the model, and no request says which one served it",
        groups.size());
    return loop;
  }
  const auto key = [](const StageStep* step) {
    return std::tuple(step->gpu_start_ns.value_or(step->start_ns), step->start_ns, step->instance);
  };
  std::ranges::sort(order, {}, [&](const StageStep* one) { return key(one); });
  for (const StageStep* step : order) {
    LoopStep made = loop_step(*step);
    const StageInstance& instance = stages.instances[step->instance];
    made.first_slot = static_cast<std::uint32_t>(loop.slots.size());
    if (instance.marker != kNone) {
      read_slots(trace.strings[static_cast<StringId>(instance.marker)], loop.slots);
    }
    made.num_slots = static_cast<std::uint32_t>(loop.slots.size()) - made.first_slot;
    loop.steps.push_back(made);
  }
  separate(loop);
  return loop;
}

}  // namespace gpuwhy
