// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "model/step_counts.h"
#include "trace/trace.h"

namespace gpuwhy {

// No step has more tokens or sequences: what says so counts something else, or comes from a
// damaged file. Sums of what is left cannot overflow.
inline constexpr std::int64_t kMostTokens = 1'000'000'000;

// How the steps of a row are used.
enum class StepUse : std::uint8_t {
  kServing,   // steps of an engine that serves requests
  kFallback,  // steps of a training loop or a profiler: only where nothing better is marked
};

// One form of marker. The engines are in order of precedence: a recording that holds markers of
// several has them one inside the other, and the first in the table says most.
struct StepGrammar {
  std::string_view engine;
  std::string_view source;   // the engine's file, and the version it was read in
  std::string_view pattern;  // see step_markers.cc
  std::string_view stage;    // empty: by the requests of each phase
  std::array<std::string_view, 3> examples{};

  StepUse use = StepUse::kServing;
  std::string_view wide_stage = "verify";  // decode with more tokens than requests
  bool has_one_query_each = false;  // unless told otherwise, a request in generation has one token
  bool has_keys_before_queries = false;  // its k leaves out the tokens of this step
  bool has_joint_sums = false;           // of both phases where both have requests
  bool is_process_wide = false;          // covers every thread of its process
  std::string_view companion = {};       // a plain word: counts only beside ranges with this text
  bool has_slots = false;                // lists the sequences with their tokens: read_slots()
};
std::span<const StepGrammar> step_grammars();

// One marker, read.
struct StepMarker {
  const StepGrammar* grammar = nullptr;
  std::string_view stage;
  std::optional<std::int64_t> tokens;     // that the step computes
  std::optional<std::int64_t> sequences;  // that share them
  StepCounts counts;
};
std::optional<StepMarker> read_step_marker(std::string_view domain, std::string_view text);

// The marker that names its sequences, as gpuwhy's own wrappers write it.
inline constexpr std::string_view kSlotMarkers = "gpuwhy's wrapper";

// Tokens that a step computes for the sequence in one slot of the engine's batch.
struct SlotTokens {
  std::int64_t slot = 0;
  std::int64_t tokens = 0;

  bool operator==(const SlotTokens&) const = default;
};

// Adds what a marker says of its sequences: "seqs=0:512,1:1". Adds nothing if it is malformed or
// lists more than 65,536.
void read_slots(std::string_view text, std::vector<SlotTokens>& slots);

// Whether a text has the form of a pattern, whatever its numbers.
bool fits_pattern(std::string_view pattern, std::string_view text);

// The markers of the engine that a recording is of.
struct EngineSteps {
  struct Step {
    std::size_t row = 0;  // of Trace::ranges
    StepMarker marker;
  };
  std::string_view engine;  // empty: none was found
  std::string source;       // in words
  std::vector<Step> steps;
};
EngineSteps find_engine_steps(const Trace& trace, StepUse use);

}  // namespace gpuwhy
