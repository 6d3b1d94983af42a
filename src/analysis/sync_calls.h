// SPDX-License-Identifier: Apache-2.0
//
// Synchronizing API calls: those that return when GPU work is done.
#pragma once

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "trace/trace.h"

namespace llmprof {

// The synchronizing calls of each thread, by start.
class SyncCalls {
 public:
  explicit SyncCalls(const Trace& trace) : by_thread_(trace.threads.size()) {
    std::vector<bool> is_sync(trace.strings.size());
    for (std::size_t id = 0; id < trace.strings.size(); ++id) {
      const std::string_view name = trace.strings[static_cast<StringId>(id)];
      is_sync[id] = is_synchronising(name);
    }
    const ApiCalls& calls = trace.api_calls;
    for (std::size_t row = 0; row < calls.size(); ++row) {
      if (is_sync[static_cast<std::size_t>(calls.name[row])]) {
        by_thread_[calls.thread[row]].push_back({calls.start_ns[row], calls.end_ns[row]});
      }
    }
    for (auto& calls_of_thread : by_thread_) {
      std::sort(calls_of_thread.begin(), calls_of_thread.end());
    }
  }

  // If the thread was in such a call at `time_ns`, and it ended before `launch_ns`: its end.
  std::optional<std::int64_t> held_until(std::uint32_t thread, std::int64_t time_ns,
                                         std::int64_t launch_ns) const {
    const auto& calls = by_thread_[thread];
    auto after = std::upper_bound(calls.begin(), calls.end(), std::pair(time_ns, INT64_MAX));
    if (after == calls.begin()) {
      return std::nullopt;
    }
    --after;
    const bool is_held = time_ns < after->second && after->second <= launch_ns;
    return is_held ? std::optional(after->second) : std::nullopt;
  }

 private:
  // CUDA's, and those of AMD's runtime, which PyTorch's profiler records in the same form.
  static bool is_synchronising(std::string_view name) {
    static constexpr std::string_view kCopies[] = {"cudaMemcpy",   "cudaMemcpy2D",
                                                   "cuMemcpyDtoH", "cuMemcpyHtoD",
                                                   "hipMemcpy",    "hipMemcpyWithStream"};
    return ((name.starts_with("cu") || name.starts_with("hip")) &&
            name.find("Synchronize") != std::string_view::npos) ||
           std::find(std::begin(kCopies), std::end(kCopies), name) != std::end(kCopies);
  }

  std::vector<std::vector<std::pair<std::int64_t, std::int64_t>>> by_thread_;
};

}  // namespace llmprof
