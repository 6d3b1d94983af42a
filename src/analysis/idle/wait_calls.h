// SPDX-License-Identifier: Apache-2.0
//
// API calls in which the host waits for the GPU.
#pragma once

#include <cstdint>
#include <vector>

#include "analysis/stages/attribution.h"
#include "trace/trace.h"

namespace gpuwhy {

// The waiting calls of each thread, by start: calls that synchronise, and copies that returned only
// when they were done.
class WaitCalls {
 public:
  WaitCalls(const Trace& trace, const Origins& copies);

  // Questions in order of time, each of which goes on from the one before: a search for every gap
  // would be the larger part of finding gaps.
  class Cursor {
   public:
    explicit Cursor(const WaitCalls& waits);

    // The call in which the thread waited at `time_ns`; kNone if it did not. Times of a thread must
    // not decrease.
    std::uint32_t at(std::uint32_t thread, std::int64_t time_ns) {
      Place& place = places_[thread];
      if (place.next_ns <= time_ns) {
        advance(thread, time_ns);
      }
      return place.end_ns <= time_ns ? kNone : place.call;
    }

   private:
    // The last wait that has started, and when the next one does.
    struct Place {
      std::int64_t next_ns = INT64_MAX;
      std::int64_t end_ns = INT64_MIN;
      std::size_t next = 0;
      std::uint32_t call = kNone;
    };

    void advance(std::uint32_t thread, std::int64_t time_ns);

    const WaitCalls& waits_;
    std::vector<Place> places_;  // by thread
  };

  // How long the thread waited between two times.
  std::int64_t waited_ns(std::uint32_t thread, std::int64_t start_ns, std::int64_t end_ns) const;

  // When the last wait of a thread ends that begins before a time; INT64_MIN if there is none.
  std::int64_t last_end_ns(std::uint32_t thread, std::int64_t before_ns) const;

  // Whether one thread waited nine tenths of that time or more.
  bool waits_throughout(std::int64_t start_ns, std::int64_t end_ns) const;

 private:
  struct Wait {
    std::int64_t start_ns = 0;
    std::int64_t end_ns = 0;
    std::uint32_t call = kNone;
    std::int64_t before_ns = 0;  // waited in the calls before, without overlap

    auto operator<=>(const Wait&) const = default;
  };

  // Waited from the beginning to `time_ns`.
  std::int64_t waited_until_ns(std::uint32_t thread, std::int64_t time_ns) const;

  std::vector<std::vector<Wait>> by_thread_;
};

}  // namespace gpuwhy
