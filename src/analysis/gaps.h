// SPDX-License-Identifier: Apache-2.0
//
// Idle times of a GPU, each with one cause.
#pragma once

#include <cstdint>
#include <deque>

#include "analysis/device_work.h"
#include "analysis/time_category.h"
#include "analysis/wait_calls.h"
#include "trace/trace.h"

namespace llmprof {

// Idle time of a GPU, or the part of it that has one cause. 32 bytes: there may be one for each
// kernel.
struct Gap {
  std::int64_t start_ns = 0;
  std::int64_t end_ns = 0;
  Bucket cause = Bucket::kUnknownIdle;
  bool is_host = false;     // the host kept the GPU waiting: sync, launch_late, or before the first
  std::uint16_t label = 0;  // what the host did (analysis/idle_causes.h)
  std::uint32_t call = kNone;   // of sync: the call that waited; else the one that launched
  std::int64_t in_call_ns = 0;  // in the call that the label names, else in its scope
};

// The time of a GPU in which gaps are looked for.
struct GapBounds {
  std::int64_t start_ns = 0;
  std::int64_t end_ns = 0;
  std::int64_t marked_ns = INT64_MAX;  // the first mark with work of this GPU opens
};

// The idle times of a GPU, in time order. Stages, steps and phases that cover a gap inherit its
// cause. A deque, because there may be one for each kernel, and a growing vector exists twice while
// it is moved.
std::deque<Gap> find_gaps(const Trace& trace, const WaitCalls& waits, const AllWork& all,
                          const DeviceWork& work, const GapBounds& bounds);

}  // namespace llmprof
