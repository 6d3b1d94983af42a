// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "trace/trace.h"

namespace gpuwhy {

// From the first to the last time of a recording. Ranges without an end do not extend it.
struct TimeSpan {
  std::int64_t start_ns = 0;
  std::int64_t end_ns = 0;
};
TimeSpan time_span(const Trace& trace);

// One file of a job, and what is known of it.
struct TracePart {
  Trace trace;
  FileRow file;
};

// One recording of all parts, in their order, on the clock of the first. Processes, threads,
// streams and GPUs of different files are different; GPUs are renumbered if two files use the
// same number. Memory: little more than the parts, which are emptied column by column. Throws
// kInput if they are too large for one recording.
Trace join_traces(std::vector<TracePart> parts);

}  // namespace gpuwhy
