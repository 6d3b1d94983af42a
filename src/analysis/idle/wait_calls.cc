// SPDX-License-Identifier: Apache-2.0
//
// Waiting calls by thread.
//
// A copy to or from pageable memory is asynchronous by its name and waits all the same: it counts
// where the copy had ended when the call returned.
//
// What it gets wrong: calls of one thread that overlap, as those of the runtime and the driver
// below it, count from the start of the later one.
#include "analysis/idle/wait_calls.h"

#include <algorithm>
#include <iterator>
#include <string_view>

namespace gpuwhy {
namespace {

// CUDA's, and those of AMD's runtime, which PyTorch's profiler records in the same form.
bool is_synchronising(std::string_view name) {
  static constexpr std::string_view kCopies[] = {"cudaMemcpy",   "cudaMemcpy2D",
                                                 "cuMemcpyDtoH", "cuMemcpyHtoD",
                                                 "hipMemcpy",    "hipMemcpyWithStream"};
  return ((name.starts_with("cu") || name.starts_with("hip")) &&
          name.find("Synchronize") != std::string_view::npos) ||
         std::find(std::begin(kCopies), std::end(kCopies), name) != std::end(kCopies);
}

}  // namespace

WaitCalls::WaitCalls(const Trace& trace, const Origins& copies) : by_thread_(trace.threads.size()) {
  std::vector<bool> is_wait(trace.strings.size());
  for (std::size_t id = 0; id < trace.strings.size(); ++id) {
    is_wait[id] = is_synchronising(trace.strings[static_cast<StringId>(id)]);
  }
  const ApiCalls& calls = trace.api_calls;
  const auto add = [&](std::uint32_t row) {
    by_thread_[calls.thread[row]].push_back({calls.start_ns[row], calls.end_ns[row], row, 0});
  };
  for (std::uint32_t row = 0; row < calls.size(); ++row) {
    if (is_wait[static_cast<std::size_t>(calls.name[row])]) {
      add(row);
    }
  }
  for (std::size_t copy = 0; copy < trace.copies.size(); ++copy) {
    const std::uint32_t row = copies.call[copy];
    if (row != kNone && trace.copies.kind[copy] != CopyKind::kMemset &&
        trace.copies.end_ns[copy] <= calls.end_ns[row] &&
        !is_wait[static_cast<std::size_t>(calls.name[row])]) {
      add(row);
    }
  }
  for (std::vector<Wait>& waits : by_thread_) {
    std::ranges::sort(waits);
    std::int64_t sum_ns = 0;
    std::int64_t reach_ns = INT64_MIN;
    for (Wait& wait : waits) {
      wait.start_ns = std::max(wait.start_ns, reach_ns);
      wait.end_ns = std::max(wait.end_ns, wait.start_ns);
      wait.before_ns = sum_ns;
      sum_ns += wait.end_ns - wait.start_ns;
      reach_ns = std::max(reach_ns, wait.end_ns);
    }
  }
}

WaitCalls::Cursor::Cursor(const WaitCalls& waits)
    : waits_(waits), places_(waits.by_thread_.size()) {
  for (std::size_t thread = 0; thread < places_.size(); ++thread) {
    if (!waits.by_thread_[thread].empty()) {
      places_[thread].next_ns = waits.by_thread_[thread].front().start_ns;
    }
  }
}

void WaitCalls::Cursor::advance(std::uint32_t thread, std::int64_t time_ns) {
  const std::vector<Wait>& waits = waits_.by_thread_[thread];
  Place& place = places_[thread];
  while (place.next < waits.size() && waits[place.next].start_ns <= time_ns) {
    ++place.next;
  }
  place.next_ns = place.next < waits.size() ? waits[place.next].start_ns : INT64_MAX;
  if (place.next > 0) {
    place.end_ns = waits[place.next - 1].end_ns;
    place.call = waits[place.next - 1].call;
  }
}

std::int64_t WaitCalls::last_end_ns(std::uint32_t thread, std::int64_t before_ns) const {
  const std::vector<Wait>& waits = by_thread_[thread];
  const auto after = std::ranges::lower_bound(waits, before_ns, {}, &Wait::start_ns);
  return after == waits.begin() ? INT64_MIN : std::prev(after)->end_ns;
}

std::int64_t WaitCalls::waited_until_ns(std::uint32_t thread, std::int64_t time_ns) const {
  const std::vector<Wait>& waits = by_thread_[thread];
  const auto after = std::ranges::upper_bound(waits, time_ns, {}, &Wait::start_ns);
  if (after == waits.begin()) {
    return 0;
  }
  const Wait& last = *std::prev(after);
  return last.before_ns + std::min(time_ns, last.end_ns) - last.start_ns;
}

std::int64_t WaitCalls::waited_ns(std::uint32_t thread, std::int64_t start_ns,
                                  std::int64_t end_ns) const {
  return start_ns < end_ns ? waited_until_ns(thread, end_ns) - waited_until_ns(thread, start_ns)
                           : 0;
}

bool WaitCalls::waits_throughout(std::int64_t start_ns, std::int64_t end_ns) const {
  for (std::uint32_t thread = 0; thread < by_thread_.size(); ++thread) {
    if (!by_thread_[thread].empty() &&
        waited_ns(thread, start_ns, end_ns) * 10 >= (end_ns - start_ns) * 9) {
      return true;
    }
  }
  return false;
}

}  // namespace gpuwhy
