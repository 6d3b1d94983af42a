// SPDX-License-Identifier: Apache-2.0
//
// GPU windows, periods and ledger windows of steps.
//
// An engine marks a step on the host and runs ahead of the GPU, so the mark's own length says
// nothing about the GPU:
//
//   host  [step 0][step 1]      [step 2]
//   GPU      [..... 0 .....][..... 1 .....][..... 2 .....]
//             ^ GPU window ^
//             ^---- period --^
//
// The work of a step is what was launched for it (analysis/attribution). Its GPU window begins with
// its first kernel or graph. Copies do not begin a step: engines send the inputs of the next step
// early, on a stream of their own.
//
// The ledger window of a step begins when its mark opens or the step before finishes on the GPU,
// whichever is later, and no later than its first kernel. Kernels that were launched before the
// recording began are of the step before. It ends where that of the next step
// begins, so idle time between two steps is charged to one of them. A pause, i.e. idle time without
// a mark that is far longer than a step, is charged to none.
//
// A stage that is not a step (a whole decode loop, a user's range) keeps the window of its mark,
// extended to the end of its last GPU work.
#include "analysis/steps/steps_on_gpu.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <unordered_map>

#include "base/median.h"
#include "base/sort_runs.h"

namespace gpuwhy {
namespace {

// Idle time between two steps that is longer than this many steps is a pause: a server without
// requests, or another part of the program.
constexpr std::int64_t kPauseSteps = 5;

// Collects the GPU windows. Rows of one instance are mostly adjacent, so the table is rarely
// consulted.
class Collector {
 public:
  template <typename Table>
  void add(const Table& table, const Origins& origins, bool begins_step) {
    for (std::size_t row = 0; row < table.size(); ++row) {
      if (origins.instance[row] != kNone) {
        extend(outer_, origins.instance[row], table.device[row], table.start_ns[row],
               table.end_ns[row], begins_step);
      }
      if (origins.nested[row] != kNone) {
        extend(nested_, origins.nested[row], table.device[row], table.start_ns[row],
               table.end_ns[row], begins_step);
      }
    }
  }

  std::vector<StepOnGpu> finish() {
    for (StepOnGpu& window : windows_) {
      // Only copies.
      if (window.gpu_start_ns == INT64_MAX) {
        window.gpu_start_ns = first_copy_ns_.at(key_of(window.instance, window.device));
      }
    }
    sort_runs(windows_, [](const StepOnGpu& a, const StepOnGpu& b) {
      return std::pair(a.instance, a.device) < std::pair(b.instance, b.device);
    });
    return std::move(windows_);
  }

 private:
  static std::uint64_t key_of(std::uint32_t instance, std::uint16_t device) {
    return (static_cast<std::uint64_t>(instance) << 16) | device;
  }

  // The window of the last row.
  struct Last {
    std::uint64_t key = UINT64_MAX;
    std::size_t window = 0;
  };

  void extend(Last& last, std::uint32_t instance, std::uint16_t device, std::int64_t start_ns,
              std::int64_t end_ns, bool begins_step) {
    const std::uint64_t key = key_of(instance, device);
    if (key != last.key) {
      const auto [entry, is_new] = index_.try_emplace(key, windows_.size());
      if (is_new) {
        windows_.push_back({instance, device, INT64_MAX, INT64_MIN, 0, 0, {}, kNone});
      }
      last = {key, entry->second};
    }
    StepOnGpu& window = windows_[last.window];
    window.gpu_end_ns = std::max(window.gpu_end_ns, end_ns);
    if (begins_step) {
      window.gpu_start_ns = std::min(window.gpu_start_ns, start_ns);
    } else if (window.gpu_start_ns == INT64_MAX) {
      std::int64_t& first = first_copy_ns_.try_emplace(key, start_ns).first->second;
      first = std::min(first, start_ns);
    }
  }

  std::vector<StepOnGpu> windows_;
  std::unordered_map<std::uint64_t, std::size_t> index_;
  std::unordered_map<std::uint64_t, std::int64_t> first_copy_ns_;
  Last outer_;
  Last nested_;  // a stage inside another has rows of its own: they alternate
};

// A sequence of steps on one GPU. The steps of a process form one, unless its threads mark steps at
// the same time.
struct Lane {
  bool is_nested = false;
  std::uint32_t owner = 0;  // process, or thread
  std::uint16_t device = 0;

  auto operator<=>(const Lane&) const = default;
};

// Processes in which marks of different threads overlap.
std::vector<bool> processes_with_concurrent_steps(const Trace& trace, const Stages& stages) {
  std::vector<std::uint32_t> order;
  for (std::uint32_t i = 0; i < stages.instances.size(); ++i) {
    if (is_step(stages, stages.instances[i]) && stages.instances[i].thread != kNone) {
      order.push_back(i);
    }
  }
  sort_runs(order, [&](std::uint32_t a, std::uint32_t b) {
    return stages.instances[a].start_ns < stages.instances[b].start_ns;
  });
  std::vector<bool> is_concurrent(trace.processes.size());
  std::vector<std::pair<std::int64_t, std::uint32_t>> last(trace.processes.size(),
                                                           {INT64_MIN, kNone});  // end, thread
  for (const std::uint32_t i : order) {
    const StageInstance& step = stages.instances[i];
    const std::uint16_t process = trace.threads[step.thread].process;
    auto& [end_ns, thread] = last[process];
    if (thread != kNone && thread != step.thread && step.start_ns < end_ns) {
      is_concurrent[process] = true;
    }
    if (step.end_ns >= end_ns) {
      end_ns = step.end_ns;
      thread = step.thread;
    }
  }
  return is_concurrent;
}

// By instance: the instance around a nested one, on the same thread. kNone for all others.
std::vector<std::uint32_t> find_parents(const Stages& stages) {
  std::vector<std::uint32_t> parents(stages.instances.size(), kNone);
  std::uint32_t outer = kNone;
  for (std::uint32_t i = 0; i < stages.instances.size(); ++i) {
    const StageInstance& instance = stages.instances[i];
    if (!stages.is_nested[instance.stage]) {
      outer = i;
    } else if (outer != kNone && stages.instances[outer].thread == instance.thread &&
               instance.start_ns < stages.instances[outer].end_ns) {
      parents[i] = outer;
    }
  }
  return parents;
}

// By device: the end of kernels whose launch precedes the recording, up to the first step's work.
// They are of a step that was not recorded.
std::vector<std::int64_t> ends_of_earlier_work(const Trace& trace, const Stages& stages,
                                               const Attribution& attribution,
                                               const std::vector<StepOnGpu>& windows) {
  std::vector<std::int64_t> first_ns(trace.devices.size(), INT64_MAX);
  for (const StepOnGpu& window : windows) {
    if (is_step(stages, stages.instances[window.instance])) {
      first_ns[window.device] = std::min(first_ns[window.device], window.gpu_start_ns);
    }
  }
  std::vector<std::int64_t> end_ns(trace.devices.size(), INT64_MIN);
  for (std::size_t row = 0; row < trace.kernels.size(); ++row) {
    if (attribution.kernels.call[row] == kNone) {
      const std::uint16_t device = trace.kernels.device[row];
      if (trace.kernels.end_ns[row] <= first_ns[device]) {
        end_ns[device] = std::max(end_ns[device], trace.kernels.end_ns[row]);
      }
    }
  }
  return end_ns;
}

// Sets periods and ledger windows of the steps of one lane, in order of their GPU work. `reach_ns`
// is the end of earlier work.
void divide_lane(const Stages& stages, const std::vector<std::uint32_t>& parents,
                 std::int64_t reach_ns, std::vector<StepOnGpu*>& lane) {
  sort_runs(lane, [](const StepOnGpu* a, const StepOnGpu* b) {
    return std::tuple(a->gpu_start_ns, a->gpu_end_ns, a->instance) <
           std::tuple(b->gpu_start_ns, b->gpu_end_ns, b->instance);
  });
  std::vector<std::int64_t> distances_ns;
  for (std::size_t i = 1; i < lane.size(); ++i) {
    distances_ns.push_back(lane[i]->gpu_start_ns - lane[i - 1]->gpu_start_ns);
  }
  const std::int64_t longest_idle_ns =
      kPauseSteps * lower_median(std::move(distances_ns)).value_or(0);
  for (std::size_t i = 0; i < lane.size(); ++i) {
    StepOnGpu& step = *lane[i];
    const StageInstance& mark = stages.instances[step.instance];
    step.start_ns = std::min(step.gpu_start_ns, std::max(mark.start_ns, reach_ns));
    if (i > 0) {
      StepOnGpu& before = *lane[i - 1];
      const StageInstance& mark_before = stages.instances[before.instance];
      const std::int64_t done_ns = std::max(reach_ns, mark_before.end_ns);
      // A step of another loop does not continue this one.
      const bool is_pause = step.start_ns - done_ns > longest_idle_ns ||
                            parents[before.instance] != parents[step.instance];
      before.end_ns =
          std::max(before.start_ns, is_pause ? std::min(done_ns, step.start_ns) : step.start_ns);
      if (!is_pause && step.gpu_start_ns > before.gpu_start_ns) {
        before.period_ns = step.gpu_start_ns - before.gpu_start_ns;
        before.next = step.instance;
      }
    }
    reach_ns = std::max(reach_ns, step.gpu_end_ns);  // of all steps so far
    // The last one ends with its mark or its work.
    step.end_ns =
        std::max({step.gpu_end_ns, mark.is_open ? INT64_MIN : mark.end_ns, step.start_ns});
  }
}

// Windows of other stages: from the start of the mark to its end or that of the last own work, but
// not into the next instance of the same stage on the same thread.
void keep_marks(const Stages& stages, std::vector<StepOnGpu>& windows) {
  std::vector<std::int64_t> end_ns(stages.instances.size());
  for (std::size_t i = 0; i < stages.instances.size(); ++i) {
    end_ns[i] = stages.instances[i].end_ns;
  }
  for (const StepOnGpu& window : windows) {
    end_ns[window.instance] = std::max(end_ns[window.instance], window.gpu_end_ns);
  }
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t> last;  // (stage, thread)
  for (std::uint32_t i = 0; i < stages.instances.size(); ++i) {
    const StageInstance& instance = stages.instances[i];
    const auto [entry, is_first] = last.try_emplace({instance.stage, instance.thread}, i);
    if (!is_first) {
      std::int64_t& end = end_ns[entry->second];
      end = std::max(stages.instances[entry->second].start_ns, std::min(end, instance.start_ns));
      entry->second = i;
    }
  }
  for (StepOnGpu& window : windows) {
    if (!is_step(stages, stages.instances[window.instance])) {
      window.start_ns = stages.instances[window.instance].start_ns;
      window.end_ns = end_ns[window.instance];
    }
  }
}

}  // namespace

std::vector<StepOnGpu> find_step_windows(const Trace& trace, const Stages& stages,
                                         const Attribution& attribution) {
  Collector collector;
  collector.add(trace.kernels, attribution.kernels, true);
  collector.add(trace.graphs, attribution.graphs, true);
  collector.add(trace.copies, attribution.copies, false);
  std::vector<StepOnGpu> windows = collector.finish();
  keep_marks(stages, windows);

  const std::vector<bool> is_concurrent = processes_with_concurrent_steps(trace, stages);
  const std::vector<std::uint32_t> parents = find_parents(stages);
  std::map<Lane, std::vector<StepOnGpu*>> lanes;
  for (StepOnGpu& window : windows) {
    const StageInstance& mark = stages.instances[window.instance];
    if (!is_step(stages, mark) || mark.thread == kNone) {
      continue;
    }
    const std::uint16_t process = trace.threads[mark.thread].process;
    const std::uint32_t owner = is_concurrent[process] ? mark.thread : process;
    lanes[{stages.is_nested[mark.stage], owner, window.device}].push_back(&window);
  }
  if (lanes.empty()) {
    return windows;
  }
  const std::vector<std::int64_t> ends_ns =
      ends_of_earlier_work(trace, stages, attribution, windows);
  for (auto& [lane, steps] : lanes) {
    divide_lane(stages, parents, ends_ns[lane.device], steps);
  }
  return windows;
}

}  // namespace gpuwhy
