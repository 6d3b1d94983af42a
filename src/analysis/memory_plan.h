// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "analysis/timeline.h"
#include "trace/trace_outline.h"

namespace llmprof {

// Outputs besides the terminal's page.
struct PlannedOutput {
  bool has_picture = false;        // report.html
  bool has_trace = false;          // trace.pftrace or another export
  std::uint64_t trace_budget = 0;  // the most that it may take
};

// Forecast for an analysis. Memory is the peak resident set.
struct MemoryPlan {
  std::uint64_t load_bytes = 0;         // while the file is read
  std::uint64_t peak_bytes = 0;         // of all
  std::uint64_t coarse_peak_bytes = 0;  // with coarse_picture()
  std::int64_t duration_ns = 0;         // of one core
  std::uint64_t report_bytes = 0;       // report.html and what is small beside it
  std::uint64_t trace_bytes = 0;        // trace.pftrace
};

// From row counts alone; the recording is not read.
MemoryPlan plan_memory(const TraceOutline& outline, const PlannedOutput& output);

// Number of events of a common mix whose analysis fits; 0 if none.
std::uint64_t events_that_fit(std::uint64_t memory_bytes);

// Timeline options for little memory: fewer columns and slices.
TimelineOptions coarse_picture();

}  // namespace llmprof
