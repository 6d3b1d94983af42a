// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/names/rules.h"
#include "model/step_counts.h"
#include "results/row.h"
#include "results/stage_role.h"
#include "trace/trace.h"

namespace gpuwhy {

// One run through a stage, as the host marked it.
struct StageInstance {
  std::uint32_t stage = 0;  // into Stages::names
  std::int64_t start_ns = 0;
  std::int64_t end_ns = 0;
  std::uint32_t thread = 0;
  bool is_process_wide = false;  // a start/end range, a step: covers every thread of its process
  bool is_open = false;          // had no end of its own
  std::optional<std::int64_t> tokens;
  std::optional<std::int64_t> sequences;  // that share them, where an engine tells
  StepCounts counts;                      // the same by phase
  std::uint32_t marker = kNone;           // its text where that lists sequences: a StringId
};

struct Stages {
  std::vector<RowName> names;
  std::vector<bool> is_nested;           // by stage: lies inside another (decode_step)
  std::vector<StageInstance> instances;  // by thread, then start, then the longest first
  std::string source;
  std::string engine;      // whose step markers they are; empty: no engine's
  bool are_steps = false;  // instances of decode are single steps, not loops of them
  Diagnostics notes;       // stages that were renamed

  // Of a stage by its number; kNone: what was launched in none.
  const RowName& name_of(std::uint32_t stage) const {
    static const RowName kOutside{RowKind::kOutside};
    return stage == kNone ? kOutside : names[stage];
  }
  bool are_marked() const { return names != std::vector<RowName>{{RowKind::kUnmarked}}; }
};

// Whether an instance is one pass of an engine's loop.
inline bool is_step(const Stages& stages, const StageInstance& instance) {
  const StageRole role = role_of(stages.names[instance.stage]);
  return stages.are_steps || role == StageRole::kDecodeStep || role == StageRole::kStep;
}

// What a result must say of a stage that recorded_stage() renamed.
Diagnostic renamed_stage(std::string_view given);

// By instance: its number among the steps of its thread, as --steps counts them: from 0, in the
// whole recording. kNone: it is not a step.
std::vector<std::uint32_t> number_steps(const Trace& trace, const Stages& stages);

// First source that has any instance wins: the rules where a row of the user's fits, NVTX domain
// LLM, step markers of engines, the rules, steps of a training loop or of PyTorch's profiler.
// None: one stage `all` over [start_ns, end_ns], on every thread.
Stages find_stages(const Trace& trace, const Rules& rules, std::int64_t start_ns,
                   std::int64_t end_ns);

}  // namespace gpuwhy
