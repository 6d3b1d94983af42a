// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/error.h"
#include "fleet/merge/fleet_summary.h"

namespace gpuwhy {

// Summaries that are each fine but cannot be merged: of two runs, or one rank with two contents.
class MergeConflict : public Error {
 public:
  MergeConflict(std::string message, std::string hint)
      : Error(ErrorKind::kInput, std::move(message), std::move(hint)) {}
};

// Merges summaries, one file after the other. A rank that is already there is not added again. Only
// the highest attempt of a job counts; the others are listed.
class FleetMerge {
 public:
  FleetMerge();
  ~FleetMerge();
  FleetMerge(FleetMerge&&) noexcept;
  FleetMerge& operator=(FleetMerge&&) noexcept;

  // Adds a rank's summary or a merged one. Throws kInput if the bytes are neither; then nothing was
  // added, and the merge can go on without them. Throws MergeConflict if they are of another run,
  // if one rank of one attempt comes with different numbers, or if two merged summaries share some
  // but not all ranks: what was added cannot be removed. Returns the rank if it was a single rank's
  // summary and counts so far.
  std::optional<std::int64_t> add(std::string_view bytes);
  void add(const FleetSummary& summary);

  FleetSummary finish() const;

 private:
  class State;
  std::unique_ptr<State> state_;
};

}  // namespace gpuwhy
