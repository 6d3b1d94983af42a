// SPDX-License-Identifier: Apache-2.0
//
// Detection of tensor- and pipeline-parallel ranks in one recording.
//
// Each worker of a tensor-parallel server marks every step, so eight workers mark eight times as
// many steps as there are. Two signs together make processes one group: they mark the same sequence
// of steps, and their communication kernels run at the same time, because a collective ends when
// its last rank arrives. Replicas (data parallel) mark different steps or do not communicate, and
// are kept apart.
#include "analysis/rank_groups.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include <fmt/format.h>

namespace llmprof {
namespace {

// Share of a rank's collectives that must overlap in time with those of the other rank.
constexpr double kLeastShared = 0.9;

// Beyond this many groups a process is not compared with all of them. No server has more replicas
// in one recording.
constexpr std::size_t kMostGroups = 64;

// What a mark says of a step. Start times differ between ranks.
using Mark = std::tuple<std::uint32_t, std::int64_t, std::int64_t>;  // stage, tokens, sequences

// Marks of one process, in time order.
std::vector<std::vector<Mark>> marks_by_process(const Trace& trace, const Stages& stages) {
  std::vector<std::vector<std::pair<std::int64_t, Mark>>> timed(trace.processes.size());
  for (const StageInstance& instance : stages.instances) {
    if (instance.thread != kNone) {
      timed[trace.threads[instance.thread].process].push_back(
          {instance.start_ns,
           {instance.stage, instance.tokens.value_or(-1), instance.sequences.value_or(-1)}});
    }
  }
  std::vector<std::vector<Mark>> marks(timed.size());
  for (std::size_t process = 0; process < timed.size(); ++process) {
    std::sort(timed[process].begin(), timed[process].end());
    for (const auto& [start_ns, mark] : timed[process]) {
      marks[process].push_back(mark);
    }
  }
  return marks;
}

using Interval = std::pair<std::int64_t, std::int64_t>;

// Communication kernels of each process, by start.
std::vector<std::vector<Interval>> collectives_by_process(
    const Trace& trace, const std::vector<bool>& is_communication) {
  std::vector<std::vector<Interval>> spans(trace.processes.size());
  const Kernels& kernels = trace.kernels;
  for (std::size_t row = 0; row < kernels.size(); ++row) {
    if (is_communication[static_cast<std::size_t>(kernels.name[row])]) {
      spans[kernels.process[row]].emplace_back(kernels.start_ns[row], kernels.end_ns[row]);
    }
  }
  for (std::vector<Interval>& process : spans) {
    std::sort(process.begin(), process.end());
  }
  return spans;
}

// Share of the spans of `a` that overlap one of `b`.
double shared_part(const std::vector<Interval>& a, const std::vector<Interval>& b) {
  std::size_t shared = 0;
  std::size_t at = 0;
  for (const Interval& span : a) {
    while (at < b.size() && b[at].second <= span.first) {
      ++at;
    }
    shared += at < b.size() && b[at].first < span.second ? 1 : 0;
  }
  return a.empty() ? 0 : static_cast<double>(shared) / static_cast<double>(a.size());
}

// The same steps. A recording may begin or end between two ranks, so one mark more or less at an
// end is no difference.
bool are_same_steps(const std::vector<Mark>& a, const std::vector<Mark>& b) {
  if (a == b) {
    return true;
  }
  const std::vector<Mark>& longer = a.size() >= b.size() ? a : b;
  const std::vector<Mark>& shorter = a.size() >= b.size() ? b : a;
  if (longer.size() != shorter.size() + 1 || shorter.size() < 2) {
    return false;
  }
  return std::equal(shorter.begin(), shorter.end(), longer.begin()) ||
         std::equal(shorter.begin(), shorter.end(), longer.begin() + 1);
}

// By device, so that blocks of consecutive ranks form a group.
std::vector<std::uint16_t> processes_by_device(const Trace& trace,
                                               const std::vector<std::vector<Mark>>& marks) {
  std::vector<std::uint32_t> device(trace.processes.size(), UINT32_MAX);
  for (std::size_t row = 0; row < trace.kernels.size(); ++row) {
    std::uint32_t& lowest = device[trace.kernels.process[row]];
    lowest = std::min(lowest, trace.devices[trace.kernels.device[row]].ordinal);
  }
  std::vector<std::uint16_t> order;
  for (std::size_t process = 0; process < trace.processes.size(); ++process) {
    if (!marks[process].empty()) {
      order.push_back(static_cast<std::uint16_t>(process));
    }
  }
  std::sort(order.begin(), order.end(), [&](std::uint16_t a, std::uint16_t b) {
    return std::tuple(device[a], trace.processes[a].pid, a) <
           std::tuple(device[b], trace.processes[b].pid, b);
  });
  return order;
}

// Blocks of consecutive ranks, as many as the user says.
void group_as_told(const std::vector<std::uint16_t>& order, const Parallelism& parallelism,
                   RankGroups& result) {
  const auto all = static_cast<std::int64_t>(order.size());
  const std::int64_t size = parallelism.ranks_per_model().value_or(
      all / std::max<std::int64_t>(parallelism.data.value_or(1), 1));
  for (std::size_t i = 0; i < order.size(); ++i) {
    if (static_cast<std::int64_t>(i) % std::max<std::int64_t>(size, 1) == 0) {
      result.groups.push_back(
          {{}, fmt::format("as given: {} ranks hold one copy of the model", size)});
    }
    result.groups.back().processes.push_back(order[i]);
  }
}

}  // namespace

bool RankGroups::counts(const Trace& trace, const StageInstance& instance) const {
  if (instance.thread == kNone || groups.empty()) {
    return true;
  }
  const std::uint16_t process = trace.threads[instance.thread].process;
  const std::uint32_t group = group_of[process];
  return group == kNone || groups[group].processes.front() == process;
}

std::uint32_t RankGroups::group_of_instance(const Trace& trace,
                                            const StageInstance& instance) const {
  if (instance.thread == kNone || groups.empty()) {
    return 0;
  }
  const std::uint32_t group = group_of[trace.threads[instance.thread].process];
  return group == kNone ? 0 : group;
}

RankGroups find_rank_groups(const Trace& trace, const Stages& stages,
                            const std::vector<bool>& is_communication,
                            const Parallelism& parallelism) {
  RankGroups result;
  result.group_of.assign(trace.processes.size(), kNone);
  const std::vector<std::vector<Mark>> marks = marks_by_process(trace, stages);
  const std::vector<std::uint16_t> order = processes_by_device(trace, marks);
  if (parallelism.is_given() && order.size() > 1) {
    group_as_told(order, parallelism, result);
  } else {
    const std::vector<std::vector<Interval>> collectives =
        order.size() > 1 ? collectives_by_process(trace, is_communication)
                         : std::vector<std::vector<Interval>>(trace.processes.size());
    for (const std::uint16_t process : order) {
      const auto end = result.groups.begin() +
                       static_cast<std::ptrdiff_t>(std::min(kMostGroups, result.groups.size()));
      const auto group = std::find_if(result.groups.begin(), end, [&](const RankGroup& g) {
        const std::uint16_t first = g.processes.front();
        return are_same_steps(marks[first], marks[process]) &&
               shared_part(collectives[process], collectives[first]) >= kLeastShared;
      });
      if (group == end) {
        result.groups.push_back({{process}, ""});
      } else {
        group->processes.push_back(process);
        group->why = "they mark the same steps and their collectives run at the same time";
      }
    }
    for (RankGroup& group : result.groups) {
      if (group.why.empty() && result.groups.size() > 1) {
        group.why = "no other process marks the same steps and communicates with it";
      }
    }
  }
  for (std::uint32_t group = 0; group < result.groups.size(); ++group) {
    for (const std::uint16_t process : result.groups[group].processes) {
      result.group_of[process] = group;
    }
  }
  return result;
}

}  // namespace llmprof
