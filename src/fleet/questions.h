// SPDX-License-Identifier: Apache-2.0
//
// What a fleet is asked. Each answer is a JSON document, of which cli/ makes its tables; the sums
// come from a HistorySource, all judgement is here, so a folder and a server answer alike.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "base/json_fwd.h"
#include "fleet/history.h"

namespace llmprof {

struct FleetFilter {
  std::string run;  // its id; empty: any
  std::string model;
  std::string engine_version;
  std::string stage;
  std::int64_t since_day = 0;
  std::size_t top = 20;         // rows of the answer
  double over_fraction = 0.05;  // how much slower is worth telling
};

// Runs, how many of their ranks are there, and whether they are sealed.
Json fleet_status(HistorySource& history, const FleetFilter& filter);

// Kernels by their time over all ranks of the runs.
Json fleet_top(HistorySource& history, const FleetFilter& filter);

// Ranks of a run whose compute time in a stage is above the median of its ranks. Without a run: the
// last one. Throws kInput when there is none.
Json fleet_stragglers(HistorySource& history, const FleetFilter& filter);

// Kernels whose mean time a call has grown from `base` to `candidate`, each a run's id or an engine
// version; both empty: the last two versions. Throws kInput when a side has no runs.
Json fleet_regressions(HistorySource& history, const FleetFilter& filter, const std::string& base,
                       const std::string& candidate);

// MFU, MBU and the time of stages by day, model, GPU and engine version.
Json fleet_trend(HistorySource& history, const FleetFilter& filter);

// "2026-11-15" of days since 1970.
std::string date_text(std::int64_t day);

}  // namespace llmprof
