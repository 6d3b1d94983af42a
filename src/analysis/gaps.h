// SPDX-License-Identifier: Apache-2.0
//
// Idle times of a GPU, each with one cause.
#pragma once

#include <cstdint>
#include <deque>

#include "analysis/device_work.h"
#include "analysis/sync_calls.h"
#include "analysis/time_category.h"
#include "trace/trace.h"

namespace llmprof {

// Idle time of a GPU, or the part of it that has one cause.
struct Gap {
  std::int64_t start_ns = 0;
  std::int64_t end_ns = 0;
  Bucket cause = Bucket::kUnknownIdle;
  std::int64_t held_until_ns = INT64_MIN;  // of sync: when the synchronising call returned
};

// The idle times of a GPU from `start_ns` to `end_ns`, in time order. Stages, steps and phases that
// cover a gap inherit its cause. A deque, because there may be one for each kernel, and a growing
// vector exists twice while it is moved.
std::deque<Gap> find_gaps(const Trace& trace, const SyncCalls& syncs, const DeviceWork& device,
                          std::int64_t start_ns, std::int64_t end_ns);

}  // namespace llmprof
