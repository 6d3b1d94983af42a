// SPDX-License-Identifier: Apache-2.0
//
// Causes of idle time, judged once per GPU.
//
//   GPU   [ work ].......................[ next ]
//   host     sync=====|   |-launch-|
//         sync........................|started_late
//
// The work that ends a gap determines its cause: when it was launched, and what the launching
// thread was doing when the gap opened. If the launch had returned long before the work started,
// that part of the gap is a cause of its own: the host was done, and something else held the work
// back.
#include "analysis/gaps.h"

namespace llmprof {
namespace {

// From the return of a launch to the start of its kernel on an idle GPU: a few microseconds. Up to
// this long it counts as the launch itself.
constexpr std::int64_t kLaunchLatencyNs = 20'000;

class GapFinder {
 public:
  GapFinder(const Trace& trace, const SyncCalls& syncs) : trace_(trace), syncs_(syncs) {}

  // Adds the gap that `next` ends, in one or two parts.
  void add(const Work* previous, const Work& next, std::int64_t start_ns) {
    Gap gap{start_ns, next.start_ns, Bucket::kUnknownIdle, INT64_MIN};
    if (next.call == kNone) {
      gaps_.push_back(gap);
      return;
    }
    if (previous != nullptr && next.is_graph_node && previous->call == next.call) {
      gap.cause = Bucket::kGraph;
      gaps_.push_back(gap);
      return;
    }
    const std::int64_t launch_ns = trace_.api_calls.start_ns[next.call];
    const std::uint32_t thread = trace_.api_calls.thread[next.call];
    if (const auto held_until_ns = syncs_.held_until(thread, start_ns, launch_ns)) {
      gap.cause = Bucket::kSync;
      gap.held_until_ns = *held_until_ns;
    } else if (launch_ns <= start_ns) {
      gap.cause = Bucket::kQueued;
      gaps_.push_back(gap);
      return;
    } else {
      gap.cause = Bucket::kLaunchLate;
    }
    const std::int64_t launched_ns =
        std::clamp(trace_.api_calls.end_ns[next.call], start_ns, next.start_ns);
    if (next.start_ns - launched_ns > kLaunchLatencyNs) {
      gap.end_ns = launched_ns;
    }
    if (gap.start_ns < gap.end_ns) {
      gaps_.push_back(gap);
    }
    if (gap.end_ns < next.start_ns) {
      gaps_.push_back({gap.end_ns, next.start_ns, Bucket::kStartedLate, INT64_MIN});
    }
  }

  void add_tail(std::int64_t start_ns, std::int64_t end_ns) {
    gaps_.push_back({start_ns, end_ns, Bucket::kTail, INT64_MIN});
  }

  std::deque<Gap> finish() { return std::move(gaps_); }

 private:
  const Trace& trace_;
  const SyncCalls& syncs_;
  std::deque<Gap> gaps_;
};

}  // namespace

std::deque<Gap> find_gaps(const Trace& trace, const SyncCalls& syncs, const DeviceWork& device,
                          std::int64_t start_ns, std::int64_t end_ns) {
  GapFinder finder(trace, syncs);
  const Work* previous = nullptr;
  std::int64_t reach_ns = start_ns;  // busy until then
  for (const Work& work : device.work) {
    if (work.end_ns == work.start_ns) {
      continue;
    }
    if (reach_ns < work.start_ns) {
      finder.add(previous, work, reach_ns);
    }
    reach_ns = std::max(reach_ns, work.end_ns);
    previous = &work;
  }
  if (reach_ns < end_ns) {
    finder.add_tail(reach_ns, end_ns);
  }
  return finder.finish();
}

}  // namespace llmprof
