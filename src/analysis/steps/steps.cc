// SPDX-License-Identifier: Apache-2.0
//
// Assembly of steps from marks, GPU windows and groups of ranks.
//
// Ranks of a group mark the same steps in the same order. The n-th mark of each rank is one step of
// the group: it begins with the first kernel of any rank and ends with the last work of any.
//
// The steady window leaves out warm-up and drain: the decode steps of a group from the first to the
// last that is neither slower than twice the median period nor, where the marks tell the number of
// sequences, below four fifths of the largest batch.
#include "analysis/steps/steps.h"

#include <algorithm>
#include <cstdlib>
#include <map>
#include <set>
#include <tuple>

#include <fmt/format.h>

#include "base/median.h"
#include "base/sort_runs.h"
#include "results/stage_role.h"
#include "trace/device_label.h"

namespace gpuwhy {
namespace {

constexpr std::int64_t kSlowSteps = 2;  // times the median period: warm-up

// Times of a step on all GPUs of its group.
struct GroupTimes {
  std::int64_t start_ns = INT64_MAX;
  std::int64_t end_ns = INT64_MIN;
  std::int64_t work_ns = 0;
  std::uint32_t next = kNone;  // instance of the first rank

  bool has_work() const { return start_ns <= end_ns; }
};

// The number among the marks of the first rank that the first mark of another rank has. A recording
// may begin between the marks of two ranks: where one of them has a mark more, that is the first or
// the last of all, as the start times tell.
std::int32_t lead_of(const std::vector<std::int64_t>& first_rank,
                     const std::vector<std::int64_t>& rank) {
  if (rank.size() + 1 == first_rank.size() && !rank.empty() &&
      std::abs(rank[0] - first_rank[1]) < std::abs(rank[0] - first_rank[0])) {
    return 1;
  }
  if (first_rank.size() + 1 == rank.size() && !first_rank.empty() &&
      std::abs(rank[1] - first_rank[0]) < std::abs(rank[0] - first_rank[0])) {
    return -1;
  }
  return 0;
}

// By instance: its number among the steps of its group, in time order.
std::vector<std::uint32_t> number_instances(const Trace& trace, const Stages& stages,
                                            const RankGroups& groups) {
  std::vector<std::uint32_t> order(stages.instances.size());
  for (std::uint32_t i = 0; i < order.size(); ++i) {
    order[i] = i;
  }
  const auto is_earlier = [&](std::uint32_t a, std::uint32_t b) {
    const StageInstance& x = stages.instances[a];
    const StageInstance& y = stages.instances[b];
    return std::tuple(x.start_ns, -x.end_ns, a) < std::tuple(y.start_ns, -y.end_ns, b);
  };
  sort_runs(order, is_earlier);
  std::vector<std::vector<std::int64_t>> starts_ns(trace.processes.size());
  std::vector<std::uint32_t> numbers(stages.instances.size());
  for (const std::uint32_t i : order) {
    if (stages.instances[i].thread != kNone) {
      auto& own = starts_ns[trace.threads[stages.instances[i].thread].process];
      numbers[i] = static_cast<std::uint32_t>(own.size());
      own.push_back(stages.instances[i].start_ns);
    }
  }
  for (std::uint32_t i = 0; i < numbers.size(); ++i) {
    if (stages.instances[i].thread != kNone) {
      const std::uint16_t process = trace.threads[stages.instances[i].thread].process;
      const std::uint32_t group = groups.group_of[process];
      const std::uint16_t first = group == kNone ? process : groups.groups[group].processes.front();
      // Step 0 minus one is none.
      numbers[i] += static_cast<std::uint32_t>(lead_of(starts_ns[first], starts_ns[process]));
    }
  }
  return numbers;
}

// Instance of the first rank for each instance of any rank of its group.
std::vector<std::uint32_t> first_rank_instances(const Trace& trace, const Stages& stages,
                                                const RankGroups& groups) {
  const std::vector<std::uint32_t> numbers = number_instances(trace, stages, groups);
  std::map<std::uint32_t, std::vector<std::uint32_t>> first;  // by group, then number
  for (std::uint32_t i = 0; i < stages.instances.size(); ++i) {
    const StageInstance& instance = stages.instances[i];
    if (instance.thread != kNone && groups.counts(trace, instance)) {
      std::vector<std::uint32_t>& steps = first[groups.group_of_instance(trace, instance)];
      steps.resize(std::max<std::size_t>(steps.size(), numbers[i] + std::size_t{1}), kNone);
      steps[numbers[i]] = i;
    }
  }
  std::vector<std::uint32_t> result(stages.instances.size(), kNone);
  for (std::uint32_t i = 0; i < stages.instances.size(); ++i) {
    const StageInstance& instance = stages.instances[i];
    if (instance.thread == kNone) {
      result[i] = i;
      continue;
    }
    const std::vector<std::uint32_t>& steps = first[groups.group_of_instance(trace, instance)];
    result[i] = numbers[i] < steps.size() ? steps[numbers[i]] : kNone;
  }
  return result;
}

// (process, device) of all kernels and graphs.
std::set<std::pair<std::uint16_t, std::uint16_t>> used_devices(const Trace& trace) {
  std::set<std::pair<std::uint16_t, std::uint16_t>> uses;
  const auto add = [&](const auto& table) {
    for (std::size_t row = 0; row < table.size(); ++row) {
      if (row == 0 || table.process[row] != table.process[row - 1] ||
          table.device[row] != table.device[row - 1]) {
        uses.emplace(table.process[row], table.device[row]);
      }
    }
  };
  add(trace.kernels);
  add(trace.graphs);
  return uses;
}

// Whether a decode step has as many sequences as the loop at its fullest.
bool has_full_batch(const StageStep& step, std::int64_t most) {
  return !step.sequences || *step.sequences * 5 >= most * 4;
}

}  // namespace

Stages counted_stages(const Trace& trace, const Stages& stages, const RankGroups& groups) {
  Stages counted = stages;
  std::erase_if(counted.instances,
                [&](const StageInstance& instance) { return !groups.counts(trace, instance); });
  return counted;
}

std::vector<StageStep> find_steps(const Trace& trace, const Stages& stages,
                                  const RankGroups& groups, const std::vector<StepOnGpu>& windows,
                                  const std::vector<std::int64_t>& own_ns) {
  const std::vector<std::uint32_t> first = first_rank_instances(trace, stages, groups);
  std::vector<GroupTimes> times(stages.instances.size());
  for (std::size_t i = 0; i < windows.size(); ++i) {
    const StepOnGpu& window = windows[i];
    if (first[window.instance] == kNone) {
      continue;
    }
    GroupTimes& step = times[first[window.instance]];
    step.start_ns = std::min(step.start_ns, window.gpu_start_ns);
    step.end_ns = std::max(step.end_ns, window.gpu_end_ns);
    step.work_ns = std::max(step.work_ns, own_ns[i]);
    if (first[window.instance] == window.instance && window.next != kNone) {
      step.next = window.next;
    }
  }
  const std::vector<std::uint32_t> numbers = number_steps(trace, stages);
  std::vector<StageStep> steps;
  steps.reserve(static_cast<std::size_t>(
      std::count_if(stages.instances.begin(), stages.instances.end(),
                    [&](const StageInstance& one) { return groups.counts(trace, one); })));
  for (std::uint32_t i = 0; i < stages.instances.size(); ++i) {
    const StageInstance& instance = stages.instances[i];
    if (!groups.counts(trace, instance)) {
      continue;
    }
    StageStep& step = steps.emplace_back();
    step.stage = instance.stage;
    step.instance = i;
    step.start_ns = instance.start_ns;
    step.duration_ns = instance.end_ns - instance.start_ns;
    step.is_open = instance.is_open;
    step.is_step = is_step(stages, instance);
    step.number = numbers[i];
    step.tokens = instance.tokens;
    step.sequences = instance.sequences;
    step.counts = instance.counts;
    step.group = groups.group_of_instance(trace, instance);
    const GroupTimes& gpu = times[i];
    if (!gpu.has_work()) {
      continue;
    }
    step.gpu_start_ns = gpu.start_ns;
    step.gpu_window_ns = gpu.end_ns - gpu.start_ns;
    step.gpu_work_ns = gpu.work_ns;
    if (gpu.next != kNone && times[gpu.next].has_work() &&
        times[gpu.next].start_ns > gpu.start_ns) {
      step.period_ns = times[gpu.next].start_ns - gpu.start_ns;
      step.is_before_same = stages.instances[gpu.next].stage == instance.stage;
    }
  }
  return steps;
}

std::vector<StepRow> summarise_steps(const std::vector<RowName>& stage_names,
                                     const std::vector<StageStep>& steps) {
  std::vector<std::vector<const StageStep*>> by_stage(stage_names.size());
  for (const StageStep& step : steps) {
    if (!step.is_open) {
      by_stage[step.stage].push_back(&step);
    }
  }
  std::vector<StepRow> rows;
  for (std::size_t i = 0; i < by_stage.size(); ++i) {
    sort_runs(by_stage[i], [](const StageStep* a, const StageStep* b) {
      return std::tuple(a->start_ns, a->duration_ns) < std::tuple(b->start_ns, b->duration_ns);
    });
    StepRow& row = rows.emplace_back();
    row.stage = stage_names[i];
    row.n = static_cast<std::int64_t>(by_stage[i].size());
    std::vector<std::int64_t> gpu_windows;
    std::vector<std::int64_t> gpu_work;
    std::vector<std::int64_t> periods;
    for (const StageStep* step : by_stage[i]) {
      if (row.durations_ns.size() < kMostDurations) {
        row.durations_ns.push_back(step->duration_ns);
      }
      if (step->gpu_window_ns) {
        gpu_windows.push_back(*step->gpu_window_ns);
        gpu_work.push_back(*step->gpu_work_ns);
      }
      if (step->period_ns) {
        periods.push_back(*step->period_ns);
      }
    }
    row.gpu_window_median_ns = lower_median(std::move(gpu_windows));
    row.gpu_work_median_ns = lower_median(std::move(gpu_work));
    row.period_median_ns = lower_median(periods);
    periods.resize(std::min(kMostDurations, periods.size()));
    row.periods_ns = std::move(periods);
  }
  return rows;
}

std::string mark_steady(const std::vector<RowName>& stage_names, std::vector<StageStep>& steps) {
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::vector<StageStep*>> loops;
  for (StageStep& step : steps) {
    if (step.is_step && is_decode(stage_names[step.stage])) {
      loops[{step.group, step.stage}].push_back(&step);
    }
  }
  std::string words;
  for (auto& [key, loop] : loops) {
    sort_runs(loop,
              [](const StageStep* a, const StageStep* b) { return a->start_ns < b->start_ns; });
    std::vector<std::int64_t> periods;
    std::int64_t most_sequences = 0;
    for (const StageStep* step : loop) {
      most_sequences = std::max(most_sequences, step->sequences.value_or(0));
      if (step->period_ns && step->is_before_same) {
        periods.push_back(*step->period_ns);
      }
    }
    const std::optional<std::int64_t> median = lower_median(std::move(periods));
    const auto is_settled = [&](const StageStep* step) {
      return median && step->period_ns && step->is_before_same &&
             *step->period_ns <= kSlowSteps * *median && has_full_batch(*step, most_sequences);
    };
    const auto from = std::find_if(loop.begin(), loop.end(), is_settled);
    const auto to = std::find_if(loop.rbegin(), loop.rend(), is_settled).base();
    for (auto step = from; step < to; ++step) {
      (*step)->is_steady = true;
    }
    if (words.empty() && from < to) {
      words = fmt::format(
          "{} {}..{}, {} of {}{}", stage_names[key.second].text(), (*from)->number,
          (*(to - 1))->number, to - from, loop.size(),
          loops.size() > 1 ? fmt::format(" in the first of {} loops", loops.size()) : "");
    }
  }
  return words;
}

std::vector<RankGroupSummary> summarise_groups(const Trace& trace, const RankGroups& groups,
                                               const std::vector<StageStep>& steps) {
  std::vector<RankGroupSummary> rows;
  const std::set<std::pair<std::uint16_t, std::uint16_t>> uses = used_devices(trace);
  for (const RankGroup& group : groups.groups) {
    RankGroupSummary& summary = rows.emplace_back();
    summary.why = group.why;
    std::map<std::uint32_t, std::string> labels;  // by ordinal
    for (const std::uint16_t process : group.processes) {
      summary.pids.push_back(trace.processes[process].pid);
      for (auto use = uses.lower_bound({process, 0}); use != uses.end() && use->first == process;
           ++use) {
        const DeviceInfo& device = trace.devices[use->second];
        labels.try_emplace(device.ordinal, device_label(device));
      }
    }
    for (auto& [ordinal, label] : labels) {
      summary.devices.push_back(std::move(label));
    }
  }
  for (const StageStep& step : steps) {
    if (step.group < rows.size()) {
      ++rows[step.group].num_steps;
    }
  }
  return rows;
}

}  // namespace gpuwhy
