// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "trace/trace_outline.h"

namespace gpuwhy {

struct TimelineOptions;

// Outputs besides the terminal's page.
struct PlannedOutput {
  bool has_picture = false;        // report.html
  bool has_trace = false;          // trace.pftrace or another export
  std::uint64_t trace_budget = 0;  // the most that it may take
};

// Forecast for an analysis. Memory is the peak resident set.
struct ReadingNeed {
  std::uint64_t load_bytes = 0;         // while the file is read, or one file of a job
  std::uint64_t window_bytes = 0;       // of load_bytes, what a file takes only while it is read
  std::uint64_t peak_bytes = 0;         // of all
  std::uint64_t coarse_peak_bytes = 0;  // with coarse_picture()
  std::int64_t duration_ns = 0;         // of one core
  std::uint64_t report_bytes = 0;       // report.html and what is small beside it
  std::uint64_t trace_bytes = 0;        // trace.pftrace
};

// How the files of a job are read.
struct PlannedReading {
  std::size_t num_files = 1;
  unsigned num_threads = 1;
  std::optional<std::uint64_t> limit_bytes = {};  // of --memory-limit
};

// Files that are read at the same time: one for each thread, and fewer where what each takes while
// it is read does not fit into the limit beside the rows of all.
unsigned files_at_once(const ReadingNeed& plan, const PlannedReading& reading);

// The plan for reading that many files at the same time.
ReadingNeed with_files_at_once(ReadingNeed plan, unsigned num_files);

// From row counts alone; the recording is not read. Of a job, the files are read one by one.
ReadingNeed reading_need(const TraceOutline& outline, const PlannedOutput& output);

// Number of events of a common mix whose analysis fits; 0 if none.
std::uint64_t events_that_fit(std::uint64_t memory_bytes);

// Timeline options for little memory: fewer columns and slices.
TimelineOptions coarse_picture();

}  // namespace gpuwhy
