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
// step. Inside a mark it is known: if the GPU's first kernel starts as soon as it is launched and
// the host has waited for nothing since, the GPU was idle for lack of a launch.
#include "analysis/idle/gaps.h"

#include <algorithm>

namespace gpuwhy {
namespace {

// From the return of a launch to the start of its kernel on an idle GPU: a few microseconds. Up to
// this long it counts as the launch itself.
constexpr std::int64_t kLaunchLatencyNs = 20'000;

// The same for a first kernel, which takes longer (AMD: 21 to 24 us). One that waits for the work
// of an earlier step takes milliseconds.
constexpr std::int64_t kFirstLatencyNs = 100'000;

// A shorter wait is the end of what was recorded.
constexpr std::int64_t kUnrecordedNs = 1'000'000;

// Whether the first kernel of a GPU starts as soon as it is launched, or after recorded work. If
// not, it waited for work that was not recorded, and copies before it may have run beside that.
bool first_kernel_is_prompt(const Trace& trace, const AllWork& all, const DeviceWork& work) {
  std::int64_t ready_ns = INT64_MIN;
  for (const std::uint32_t number : work) {
    if (all.kind(number) != Bucket::kCopy && all.end_ns(number) > all.start_ns(number)) {
      const std::uint32_t call = all.call(number);
      return call != kNone && all.start_ns(number) - kFirstLatencyNs <=
                                  std::max(ready_ns, trace.api_calls.end_ns[call]);
    }
    ready_ns = std::max(ready_ns, all.end_ns(number));
  }
  return false;
}

}  // namespace

GapJudge::GapJudge(const Trace& trace, const WaitCalls& waits, const AllWork& all,
                   const DeviceWork& work, std::int64_t marked_ns)
    : trace_(trace),
      waits_(waits),
      all_(all),
      marked_ns_(first_kernel_is_prompt(trace, all, work) ? marked_ns : INT64_MAX),
      cursor_(waits) {}

std::span<Gap> GapJudge::judge(std::uint32_t previous, std::uint32_t next, std::int64_t start_ns) {
  num_parts_ = 0;
  const std::int64_t end_ns = all_.start_ns(next);
  const std::uint32_t call = all_.call(next);
  if (call == kNone) {
    put(start_ns, end_ns, previous == kNone ? Bucket::kUnrecorded : Bucket::kUnknownIdle);
    return parts();
  }
  if (previous != kNone && all_.is_graph_node(next) && all_.call(previous) == call) {
    put(start_ns, end_ns, Bucket::kGraph);
    return parts();
  }
  std::int64_t launched_ns = std::clamp(trace_.api_calls.end_ns[call], start_ns, end_ns);
  const bool is_host_late = launched_ns > start_ns;
  if (is_host_late && end_ns - launched_ns <= kLaunchLatencyNs) {
    launched_ns = end_ns;
  }
  if (previous == kNone) {
    const std::int64_t idle_ns =
        launched_ns == end_ns ? std::clamp(idle_since(call), start_ns, end_ns) : launched_ns;
    put_host(start_ns, idle_ns, Bucket::kUnrecorded, call);
    put_host(idle_ns, launched_ns, Bucket::kLaunchLate, call);
    put(launched_ns, end_ns, Bucket::kUnrecorded);
    return parts();
  }
  const std::uint32_t wait = cursor_.at(trace_.api_calls.thread[call], start_ns);
  std::int64_t free_ns = start_ns;  // the host no longer waits
  if (wait != kNone && wait != call &&
      trace_.api_calls.end_ns[wait] <= trace_.api_calls.start_ns[call]) {
    free_ns = std::min(trace_.api_calls.end_ns[wait], launched_ns);
    put_host(start_ns, free_ns, Bucket::kSync, wait);
  }
  put_host(free_ns, launched_ns, Bucket::kLaunchLate, call);
  if (launched_ns < end_ns) {
    put(launched_ns, end_ns,
        waits_for_unrecorded(launched_ns, end_ns) ? Bucket::kUnrecorded
        : is_of_graph(call)                       ? Bucket::kGraph
        : is_host_late                            ? Bucket::kStartedLate
                                                  : Bucket::kQueued);
  }
  return parts();
}

std::span<Gap> GapJudge::judge_tail(std::int64_t start_ns, std::int64_t end_ns) {
  num_parts_ = 0;
  put(start_ns, end_ns, Bucket::kTail);
  return parts();
}

// From when on a GPU is idle for certain that a call sends its first work: the mark is open, and
// the host has waited for nothing since.
std::int64_t GapJudge::idle_since(std::uint32_t call) const {
  const std::int64_t call_ns = trace_.api_calls.start_ns[call];
  const std::int64_t waited_ns = waits_.last_end_ns(trace_.api_calls.thread[call], call_ns);
  return waited_ns > call_ns ? INT64_MAX : std::max(marked_ns_, waited_ns);
}

// The host waited for the GPU, which ran nothing that was recorded: it ran something else. Where
// there are several GPUs, the host may have waited for another one.
bool GapJudge::waits_for_unrecorded(std::int64_t start_ns, std::int64_t end_ns) const {
  return end_ns - start_ns >= kUnrecordedNs && trace_.devices.size() == 1 &&
         waits_.waits_throughout(start_ns, end_ns);
}

// Recordings without numbers of nodes show only that the launch was one of a graph.
bool GapJudge::is_of_graph(std::uint32_t call) {
  if (const StringId name = trace_.api_calls.name[call]; name != last_name_) {
    last_name_ = name;
    is_last_graph_ = trace_.strings[name].find("GraphLaunch") != std::string_view::npos;
  }
  return is_last_graph_;
}

void GapJudge::put(std::int64_t start_ns, std::int64_t end_ns, Bucket cause) {
  if (start_ns < end_ns) {
    parts_[num_parts_++] = {start_ns, end_ns, cause};
  }
}

void GapJudge::put_host(std::int64_t start_ns, std::int64_t end_ns, Bucket cause,
                        std::uint32_t call) {
  if (start_ns < end_ns) {
    parts_[num_parts_++] = {start_ns, end_ns, cause, true, 0, call};
  }
}

}  // namespace gpuwhy
