// SPDX-License-Identifier: Apache-2.0
//
// Causes of idle time, judged once per GPU.
//
//   GPU   [ work ].............................[ next ]
//   host     wait=====|       |-launch-|
//         sync........|launch_late.....|started_late
//
// The work that ends a gap determines its causes. While the launching thread still waits for
// earlier work, the gap is `sync`. From then on until the launch has returned, the host had not
// launched: also inside the launching call, which may itself take long. If the launch had returned
// long before the work started, the host was done and something else held the work back: that part
// is a cause of its own. Before the first work of a GPU nothing is known of what ran, and while the
// host waits for a GPU that seems idle, it runs what was not recorded: such time counts for no
// step.
#include "analysis/gaps.h"

#include <algorithm>

namespace llmprof {
namespace {

// From the return of a launch to the start of its kernel on an idle GPU: a few microseconds. Up to
// this long it counts as the launch itself.
constexpr std::int64_t kLaunchLatencyNs = 20'000;

// A shorter wait is the end of what was recorded.
constexpr std::int64_t kUnrecordedNs = 1'000'000;

class GapFinder {
 public:
  GapFinder(const Trace& trace, const WaitCalls& waits)
      : trace_(trace), waits_(waits), cursor_(waits) {}

  // Adds the gap that `next` ends, in up to three parts.
  void add(const Work* previous, const Work& next, std::int64_t start_ns) {
    if (next.call == kNone) {
      put(start_ns, next.start_ns,
          previous == nullptr ? Bucket::kUnrecorded : Bucket::kUnknownIdle);
      return;
    }
    if (previous != nullptr && next.is_graph_node && previous->call == next.call) {
      put(start_ns, next.start_ns, Bucket::kGraph);
      return;
    }
    std::int64_t launched_ns =
        std::clamp(trace_.api_calls.end_ns[next.call], start_ns, next.start_ns);
    const bool is_host_late = launched_ns > start_ns;
    if (is_host_late && next.start_ns - launched_ns <= kLaunchLatencyNs) {
      launched_ns = next.start_ns;
    }
    if (previous == nullptr) {
      put_host(start_ns, launched_ns, Bucket::kUnrecorded, next.call);
      put(launched_ns, next.start_ns, Bucket::kUnrecorded);
      return;
    }
    const std::uint32_t wait = cursor_.at(trace_.api_calls.thread[next.call], start_ns);
    std::int64_t free_ns = start_ns;  // the host no longer waits
    if (wait != kNone && wait != next.call &&
        trace_.api_calls.end_ns[wait] <= trace_.api_calls.start_ns[next.call]) {
      free_ns = std::min(trace_.api_calls.end_ns[wait], launched_ns);
      put_host(start_ns, free_ns, Bucket::kSync, wait);
    }
    put_host(free_ns, launched_ns, Bucket::kLaunchLate, next.call);
    put(launched_ns, next.start_ns,
        waits_for_unrecorded(launched_ns, next.start_ns) ? Bucket::kUnrecorded
        : is_of_graph(next)                              ? Bucket::kGraph
        : is_host_late                                   ? Bucket::kStartedLate
                                                         : Bucket::kQueued);
  }

  void add_tail(std::int64_t start_ns, std::int64_t end_ns) {
    put(start_ns, end_ns, Bucket::kTail);
  }

  std::deque<Gap> finish() { return std::move(gaps_); }

 private:
  // The host waited for the GPU, which ran nothing that was recorded: it ran something else. Where
  // there are several GPUs, the host may have waited for another one.
  bool waits_for_unrecorded(std::int64_t start_ns, std::int64_t end_ns) const {
    return end_ns - start_ns >= kUnrecordedNs && trace_.devices.size() == 1 &&
           waits_.waits_throughout(start_ns, end_ns);
  }

  // Recordings without numbers of nodes show only that the launch was one of a graph.
  bool is_of_graph(const Work& next) const {
    return trace_.strings[trace_.api_calls.name[next.call]].find("GraphLaunch") !=
           std::string_view::npos;
  }

  void put(std::int64_t start_ns, std::int64_t end_ns, Bucket cause) {
    if (start_ns < end_ns) {
      gaps_.push_back({start_ns, end_ns, cause});
    }
  }
  void put_host(std::int64_t start_ns, std::int64_t end_ns, Bucket cause, std::uint32_t call) {
    if (start_ns < end_ns) {
      gaps_.push_back({start_ns, end_ns, cause, true, 0, call});
    }
  }

  const Trace& trace_;
  const WaitCalls& waits_;
  WaitCalls::Cursor cursor_;
  std::deque<Gap> gaps_;
};

}  // namespace

std::deque<Gap> find_gaps(const Trace& trace, const WaitCalls& waits, const DeviceWork& device,
                          std::int64_t start_ns, std::int64_t end_ns) {
  GapFinder finder(trace, waits);
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
