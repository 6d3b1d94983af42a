// SPDX-License-Identifier: Apache-2.0
//
// History queries. Each returns a JSON document, from which cli/ makes tables. The sums come from a
// HistorySource; everything else is here, so a folder and a server give the same results.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "base/json_fwd.h"
#include "fleet/history/history.h"

namespace gpuwhy {

// Selection of runs and rows.
struct FleetFilter {
  std::string run = {};  // its id; empty: any
  std::string model = {};
  std::string engine_version = {};
  std::string stage = {};
  std::string label = {};  // "key=value"
  std::int64_t since_day = 0;
  std::size_t top = 20;         // rows of the answer
  double over_fraction = 0.05;  // smallest slowdown to report
  // Of fleet_regressions(): each a run id or an engine version; both empty: the last two versions.
  std::string base = {};
  std::string candidate = {};
};

// Runs, how many of their ranks are present, and whether they are sealed.
Json fleet_status(HistorySource& history, const FleetFilter& filter);

// Kernels by total time over all ranks of the runs.
Json fleet_top(HistorySource& history, const FleetFilter& filter);

// Parts of the model by total time over all ranks of the runs.
Json fleet_layers(HistorySource& history, const FleetFilter& filter);

// Ranks of a run whose compute time in a stage is above the median of all ranks. Without a run: the
// last one. Throws kInput if there is none.
Json fleet_stragglers(HistorySource& history, const FleetFilter& filter);

// Kernels whose mean time per call grew from `base` to `candidate`. Throws kInput if a side has no
// runs.
Json fleet_regressions(HistorySource& history, const FleetFilter& filter);

// MFU, MBU and stage times by day, model, GPU and engine version.
Json fleet_trend(HistorySource& history, const FleetFilter& filter);

// "2026-11-15" from days since 1970.
std::string date_text(std::int64_t day);

}  // namespace gpuwhy
