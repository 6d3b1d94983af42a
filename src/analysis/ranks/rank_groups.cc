// SPDX-License-Identifier: Apache-2.0
//
// Detection of tensor- and pipeline-parallel ranks in a recording, or in several of one job.
//
// Each worker of a tensor-parallel server marks every step, so eight workers mark eight times as
// many steps as there are. Two signs together make processes one group: they mark the same sequence
// of steps, and their communication kernels run at the same time, because a collective ends when
// its last rank arrives. Replicas (data parallel) mark different steps or do not communicate, and
// are kept apart. Names of files are a third sign: dp0_tp0 and dp0_tp1 that mark the same steps are
// one group (pipeline stages pass activations on, and never communicate all at once), dp0_tp0 and
// dp1_tp0 are two, even if their experts communicate. Files without a common clock are never one
// group: a step of theirs would have no beginning.
#include "analysis/ranks/rank_groups.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "analysis/ranks/rank_names.h"

namespace gpuwhy {
namespace {

// Share of a rank's collectives that must overlap in time with those of the other rank.
constexpr double kLeastShared = 0.9;

// Beyond this many groups a process is not compared with all of them. No server has more replicas
// in one recording.
constexpr std::size_t kMostGroups = 64;

using CollectiveSpan = std::pair<std::int64_t, std::int64_t>;

// Communication kernels of each process, by start.
std::vector<std::vector<CollectiveSpan>> collectives_by_process(
    const Trace& trace, const std::vector<bool>& is_communication) {
  std::vector<std::vector<CollectiveSpan>> spans(trace.processes.size());
  const Kernels& kernels = trace.kernels;
  for (std::size_t row = 0; row < kernels.size(); ++row) {
    if (is_communication[static_cast<std::size_t>(kernels.name[row])]) {
      spans[kernels.process[row]].emplace_back(kernels.start_ns[row], kernels.end_ns[row]);
    }
  }
  for (std::vector<CollectiveSpan>& process : spans) {
    std::ranges::sort(process);
  }
  return spans;
}

// Share of the spans of `a` that overlap one of `b`.
double shared_part(const std::vector<CollectiveSpan>& a, const std::vector<CollectiveSpan>& b) {
  std::size_t shared = 0;
  std::size_t at = 0;
  for (const CollectiveSpan& span : a) {
    while (at < b.size() && b[at].second <= span.first) {
      ++at;
    }
    shared += at < b.size() && b[at].first < span.second ? 1 : 0;
  }
  return a.empty() ? 0 : static_cast<double>(shared) / static_cast<double>(a.size());
}

// By file, then device, so that blocks of consecutive ranks form a group.
std::vector<std::uint16_t> processes_by_device(const Trace& trace,
                                               const std::vector<std::vector<StepMark>>& marks) {
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
  std::ranges::sort(order, [&](std::uint16_t a, std::uint16_t b) {
    const ProcessInfo& x = trace.processes[a];
    const ProcessInfo& y = trace.processes[b];
    return std::tuple(x.file, device[a], x.pid, a) < std::tuple(y.file, device[b], y.pid, b);
  });
  return order;
}

// How a process relates to a group. Of those of several processes the last one listed is shown.
enum class Relation { kOtherSteps, kNoSign, kNoClock, kOtherReplica, kByCollectives, kByName };

const char* text_of(Relation relation) {
  switch (relation) {
    case Relation::kByCollectives:
      return "they mark the same steps and their collectives run at the same time";
    case Relation::kByName:
      return "they mark the same steps and their files are named as parts of one replica; no "
             "collectives check their clocks, so a step is as exact as those";
    case Relation::kOtherReplica:
      return "files with other dp numbers in their names mark the same steps: replicas";
    case Relation::kNoClock:
      return "others mark the same steps, but their files have no clock in common with this one";
    case Relation::kNoSign:
      return "others mark the same steps, but their collectives do not run at the same time";
    case Relation::kOtherSteps:
      break;
  }
  return "no other process marks the same steps and communicates with it";
}

bool is_group(Relation relation) {
  return relation == Relation::kByName || relation == Relation::kByCollectives;
}

// Signs that two processes are ranks of one copy of the model.
class RankSigns {
 public:
  RankSigns(const Trace& trace, const std::vector<std::vector<StepMark>>& marks,
            const std::vector<bool>& is_communication, bool are_several)
      : trace_(trace), marks_(marks) {
    collectives_ = are_several ? collectives_by_process(trace, is_communication)
                               : std::vector<std::vector<CollectiveSpan>>(trace.processes.size());
  }

  Relation relation(std::uint16_t first, std::uint16_t process) const {
    if (!are_same_steps(marks_[first], marks_[process])) {
      return Relation::kOtherSteps;
    }
    const FileRow& a = file_of(first);
    const FileRow& b = file_of(process);
    if (are_of_two_replicas(a.name, b.name)) {
      return Relation::kOtherReplica;
    }
    if (a.clock_number != b.clock_number) {
      return Relation::kNoClock;
    }
    if (shared_part(collectives_[process], collectives_[first]) >= kLeastShared) {
      return Relation::kByCollectives;
    }
    return are_of_one_replica(a.name, b.name) ? Relation::kByName : Relation::kNoSign;
  }

 private:
  const FileRow& file_of(std::uint16_t process) const {
    static const FileRow kUnknown;
    const std::vector<FileRow>& files = trace_.capture.files;
    return files.empty() ? kUnknown : files[trace_.processes[process].file];
  }

  const Trace& trace_;
  const std::vector<std::vector<StepMark>>& marks_;
  std::vector<std::vector<CollectiveSpan>> collectives_;
};

void group_by_signs(const std::vector<std::uint16_t>& order, const RankSigns& signs,
                    RankGroups& result) {
  std::vector<Relation> why;  // by group: the strongest that was seen
  for (const std::uint16_t process : order) {
    const std::size_t num_compared = std::min(kMostGroups, result.groups.size());
    Relation strongest = Relation::kOtherSteps;
    std::size_t group = 0;
    for (; group < num_compared; ++group) {
      const Relation relation = signs.relation(result.groups[group].processes.front(), process);
      why[group] = std::max(why[group], relation);
      if (is_group(relation)) {
        break;
      }
      strongest = std::max(strongest, relation);
    }
    if (group == num_compared) {
      result.groups.push_back({{process}, ""});
      why.push_back(strongest);
    } else {
      result.groups[group].processes.push_back(process);
    }
  }
  for (std::size_t i = 0; i < result.groups.size(); ++i) {
    if (result.groups.size() > 1 || is_group(why[i])) {
      result.groups[i].why = text_of(why[i]);
    }
  }
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

std::vector<std::vector<StepMark>> marks_by_process(const Trace& trace, const Stages& stages) {
  std::vector<std::vector<std::pair<std::int64_t, StepMark>>> timed(trace.processes.size());
  for (const StageInstance& instance : stages.instances) {
    if (instance.thread != kNone) {
      timed[trace.threads[instance.thread].process].push_back(
          {instance.start_ns,
           {instance.stage, instance.tokens.value_or(-1), instance.sequences.value_or(-1)}});
    }
  }
  std::vector<std::vector<StepMark>> marks(timed.size());
  for (std::size_t process = 0; process < timed.size(); ++process) {
    std::ranges::sort(timed[process]);
    for (const auto& [start_ns, mark] : timed[process]) {
      marks[process].push_back(mark);
    }
  }
  return marks;
}

bool are_same_steps(const std::vector<StepMark>& a, const std::vector<StepMark>& b) {
  if (a == b) {
    return true;
  }
  const std::vector<StepMark>& longer = a.size() >= b.size() ? a : b;
  const std::vector<StepMark>& shorter = a.size() >= b.size() ? b : a;
  if (longer.size() != shorter.size() + 1 || shorter.size() < 2) {
    return false;
  }
  return std::equal(shorter.begin(), shorter.end(), longer.begin()) ||
         std::equal(shorter.begin(), shorter.end(), longer.begin() + 1);
}

RankGroups find_rank_groups(const Trace& trace, const Stages& stages,
                            const std::vector<bool>& is_communication,
                            const Parallelism& parallelism) {
  RankGroups result;
  result.group_of.assign(trace.processes.size(), kNone);
  const std::vector<std::vector<StepMark>> marks = marks_by_process(trace, stages);
  const std::vector<std::uint16_t> order = processes_by_device(trace, marks);
  if (parallelism.is_given() && order.size() > 1) {
    group_as_told(order, parallelism, result);
  } else {
    group_by_signs(order, RankSigns(trace, marks, is_communication, order.size() > 1), result);
  }
  for (std::uint32_t group = 0; group < result.groups.size(); ++group) {
    for (const std::uint16_t process : result.groups[group].processes) {
      result.group_of[process] = group;
    }
  }
  return result;
}

}  // namespace gpuwhy
