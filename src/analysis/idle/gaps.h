// SPDX-License-Identifier: Apache-2.0
//
// Idle times of a GPU, each with one cause.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>

#include "analysis/idle/wait_calls.h"
#include "analysis/kernels/device_work.h"
#include "results/bucket.h"
#include "trace/trace.h"

namespace gpuwhy {

// Idle time of a GPU, or the part of it that has one cause.
struct Gap {
  std::int64_t start_ns = 0;
  std::int64_t end_ns = 0;
  Bucket cause = Bucket::kUnknownIdle;
  bool is_host = false;     // the host kept the GPU waiting: sync, launch_late, or before the first
  std::uint16_t label = 0;  // what the host did (analysis/idle/idle_causes.h)
  std::uint32_t call = kNone;   // of sync: the call that waited; else the one that launched
  std::int64_t in_call_ns = 0;  // in the call that the label names, else in its scope
};

// Judges why a GPU was idle, gap after gap in time order. Gaps are not kept: there may be one for
// each kernel.
class GapJudge {
 public:
  // All must outlive it. `work` is all work of the GPU.
  GapJudge(const Trace& trace, const WaitCalls& waits, const AllWork& all, const DeviceWork& work,
           std::int64_t marked_ns);

  // The gap from `start_ns` until `next` begins, in parts with one cause each. `previous` is the
  // work before it that takes time, kNone before the first. The parts are valid until the next
  // question.
  std::span<Gap> judge(std::uint32_t previous, std::uint32_t next, std::int64_t start_ns);

  // From the last work to the end.
  std::span<Gap> judge_tail(std::int64_t start_ns, std::int64_t end_ns);

 private:
  std::int64_t idle_since(std::uint32_t call) const;
  bool waits_for_unrecorded(std::int64_t start_ns, std::int64_t end_ns) const;
  bool is_of_graph(std::uint32_t call);
  std::span<Gap> parts() { return {parts_.data(), num_parts_}; }
  void put(std::int64_t start_ns, std::int64_t end_ns, Bucket cause);
  void put_host(std::int64_t start_ns, std::int64_t end_ns, Bucket cause, std::uint32_t call);

  const Trace& trace_;
  const WaitCalls& waits_;
  const AllWork& all_;
  std::int64_t marked_ns_;  // INT64_MAX where idle time before the first work is not known
  WaitCalls::Cursor cursor_;
  StringId last_name_{};        // of a call, as is_of_graph() was asked
  bool is_last_graph_ = false;  // what it answered
  std::array<Gap, 3> parts_{};
  std::size_t num_parts_ = 0;
};

// The work of a GPU, and the time in which its gaps are counted: all windows lie inside it.
struct SweptWork {
  const AllWork& all;
  const DeviceWork& work;
  std::int64_t start_ns = 0;
  std::int64_t end_ns = 0;
};

// Where a walk over the gaps of a GPU stands.
struct GapWalk {
  std::size_t next = 0;            // into the work
  std::uint32_t previous = kNone;  // the last work that takes time
  std::int64_t reach_ns = 0;       // busy until then
};

// Calls visit(parts) for each gap from where the walk stands to its end, in time order. Returns
// early if visit returns false; the walk then goes on after that gap.
template <typename Visit>
void each_gap(const SweptWork& work, GapJudge& judge, GapWalk& walk, Visit visit) {
  while (walk.next < work.work.size()) {
    const std::uint32_t number = work.work[walk.next++];
    const std::int64_t work_start_ns = work.all.start_ns(number);
    const std::int64_t work_end_ns = work.all.end_ns(number);
    if (work_end_ns == work_start_ns) {
      continue;
    }
    const GapWalk before = walk;
    walk.previous = number;
    walk.reach_ns = std::max(walk.reach_ns, work_end_ns);
    if (before.reach_ns < work_start_ns &&
        !visit(judge.judge(before.previous, number, before.reach_ns))) {
      return;
    }
  }
  if (walk.reach_ns < work.end_ns) {
    visit(judge.judge_tail(walk.reach_ns, work.end_ns));
    walk.reach_ns = work.end_ns;
  }
}

}  // namespace gpuwhy
