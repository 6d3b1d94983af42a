// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "analysis/analysis.h"
#include "analysis/stages/attribution.h"
#include "analysis/stages/stages.h"
#include "trace/trace.h"

namespace gpuwhy {

// The steady phase of a GPU. Without one it has no length.
struct SteadyPart {
  std::int64_t start_ns = 0;
  std::int64_t end_ns = 0;

  bool is_known() const { return start_ns < end_ns; }
  bool has(std::int64_t time_ns) const { return time_ns >= start_ns && time_ns < end_ns; }
};

// By device of the trace, from the phases of the ledger.
std::vector<SteadyPart> steady_parts(const Trace& trace, const std::vector<LedgerRow>& phases);

// Fills in how much of each kernel's time is in the steady phase. A recording has one only where no
// stage is marked.
void measure_steady(const Trace& trace, const Stages& stages, const Attribution& attribution,
                    const std::vector<SteadyPart>& windows, Analysis& analysis);

}  // namespace gpuwhy
