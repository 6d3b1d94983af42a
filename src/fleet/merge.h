// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>

#include "fleet/fleet_summary.h"

namespace llmprof {

// Adds summaries of ranks up, one file after the other. A rank that is there already is not added
// again; the highest attempt of a job is the one that counts, and the others are named.
class FleetMerge {
 public:
  FleetMerge();
  ~FleetMerge();
  FleetMerge(FleetMerge&&) noexcept;
  FleetMerge& operator=(FleetMerge&&) noexcept;

  // A rank's summary or a merged one. Throws kInput where the bytes are neither, where they are of
  // another run, where one rank of one attempt comes with different numbers, and where two merged
  // ones share some ranks but not all: what was added cannot be taken out again.
  // Says which rank's summary it was, where it was one rank's and counts so far.
  std::optional<std::int64_t> add(std::string_view bytes);
  void add(const FleetSummary& summary);

  FleetSummary finish() const;

 private:
  class State;
  std::unique_ptr<State> state_;
};

}  // namespace llmprof
