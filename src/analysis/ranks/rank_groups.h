// SPDX-License-Identifier: Apache-2.0
//
// Groups of ranks that run one copy of the model together.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "analysis/stages/stages.h"
#include "results/rank_group.h"
#include "trace/trace.h"

namespace gpuwhy {

// Processes that mark the same steps and communicate: a step of theirs counts once.
struct RankGroup {
  std::vector<std::uint16_t> processes;  // into Trace::processes; marks of the first one count
  std::string why;
};

// The groups of a recording.
struct RankGroups {
  std::vector<RankGroup> groups;        // only processes with marks
  std::vector<std::uint32_t> group_of;  // by process; kNone: marks nothing

  // Whether the marks of an instance count: those of other ranks repeat them.
  bool counts(const Trace& trace, const StageInstance& instance) const;
  // The group of an instance; 0 if the instance belongs to no process.
  std::uint32_t group_of_instance(const Trace& trace, const StageInstance& instance) const;
};

// What a mark says of a step: stage, tokens, sequences. Its times differ between ranks.
using StepMark = std::tuple<std::size_t, std::int64_t, std::int64_t>;

// Marks of each process, in time order.
std::vector<std::vector<StepMark>> marks_by_process(const Trace& trace, const Stages& stages);

// Whether two processes mark the same steps. A recording may begin or end between two ranks, so one
// mark more or less at an end does not count.
bool are_same_steps(const std::vector<StepMark>& a, const std::vector<StepMark>& b);

// `is_communication` is by StringId.
RankGroups find_rank_groups(const Trace& trace, const Stages& stages,
                            const std::vector<bool>& is_communication,
                            const Parallelism& parallelism);

}  // namespace gpuwhy
