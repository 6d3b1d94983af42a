// SPDX-License-Identifier: Apache-2.0
//
// The steps of an engine as one sequence without overlaps.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "analysis/analysis.h"
#include "analysis/stages/stages.h"
#include "analysis/stages/step_markers.h"
#include "trace/trace.h"

namespace gpuwhy {

// One step. Counts are -1 where the marker does not tell them.
struct LoopStep {
  std::int64_t begin_ns = 0;  // its mark opens, or the step before ends, whichever is later
  std::int64_t end_ns = 0;    // of its last GPU work, which is when its tokens exist
  std::int64_t busy_ns = 0;   // of that time, its own work runs on the busiest GPU
  std::int64_t context_tokens = -1;
  std::int64_t context_requests = -1;
  std::int64_t sequences = -1;
  std::uint32_t first_slot = 0;  // into EngineLoop::slots
  std::uint32_t num_slots = 0;

  std::int64_t length_ns() const { return end_ns - begin_ns; }
};

// All steps by time, numbered from 0.
struct EngineLoop {
  std::vector<LoopStep> steps;
  std::vector<SlotTokens> slots;               // of the steps that name them
  std::vector<std::int64_t> length_before_ns;  // by step: lengths of all steps before it
  std::string reason;                          // why there is no loop
  bool has_gpu_work = false;                   // of any step: else the CPU does all

  bool names_slots() const { return !slots.empty(); }
  std::span<const SlotTokens> slots_of(const LoopStep& step) const {
    return {slots.data() + step.first_slot, step.num_slots};
  }
  // Time from `from_ns` to `to_ns` in which a step runs.
  std::int64_t time_in_steps(std::int64_t from_ns, std::int64_t to_ns) const;
  // The last step that ends no later than `time_ns`; kNone if there is none.
  std::uint32_t last_ended(std::int64_t time_ns) const;
  // The first step that begins no earlier than `time_ns`; the number of steps if there is none.
  std::uint32_t first_begun(std::int64_t time_ns) const;
};

EngineLoop find_engine_loop(const Trace& trace, const Stages& stages, const Analysis& analysis);

}  // namespace gpuwhy
