// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include "trace/trace.h"

namespace gpuwhy {

// Lookup of the innermost interval that covers a time: of those that do, the one that began last.
// Intervals may overlap in any way; they are converted to disjoint segments. Lookups in time order
// take constant time.
class IntervalIndex {
 public:
  void add(std::int64_t start_ns, std::int64_t end_ns, std::uint32_t id) {
    intervals_.push_back({start_ns, end_ns, id});
  }

  // After the last interval is added and before the first lookup.
  void prepare() {
    // By start; of those that start together the shortest is last: the last is the innermost.
    const auto outer_first = [](const Interval& a, const Interval& b) {
      return std::tuple(a.start_ns, -a.end_ns, a.id) < std::tuple(b.start_ns, -b.end_ns, b.id);
    };
    if (!std::ranges::is_sorted(intervals_, outer_first)) {
      std::ranges::stable_sort(intervals_, outer_first);
    }
    if (!cut_nested()) {
      segments_.clear();
      cut_any();
    }
    intervals_ = {};
  }

  // kNone if no interval covers the time.
  std::uint32_t find(std::int64_t time_ns) {
    if (segments_.empty() || time_ns < segments_[0].start_ns) {
      return kNone;
    }
    const auto holds = [&](std::size_t i) {
      return i < segments_.size() && segments_[i].start_ns <= time_ns &&
             (i + 1 == segments_.size() || time_ns < segments_[i + 1].start_ns);
    };
    if (!holds(hint_) && holds(hint_ + 1)) {
      ++hint_;
    } else if (!holds(hint_)) {
      const auto after = std::ranges::upper_bound(segments_, time_ns, {}, &Segment::start_ns);
      hint_ = static_cast<std::size_t>(after - segments_.begin()) - 1;
    }
    return segments_[hint_].id;
  }

 private:
  struct Interval {
    std::int64_t start_ns;
    std::int64_t end_ns;
    std::uint32_t id;
  };
  struct Segment {
    std::int64_t start_ns;
    std::uint32_t id;
  };

  // From `time_ns` on the innermost interval is this one, or kNone. The last word at a time counts.
  void begin_segment(std::int64_t time_ns, std::uint32_t id) {
    if (!segments_.empty() && segments_.back().start_ns == time_ns) {
      segments_.pop_back();
    }
    if (segments_.empty() || segments_.back().id != id) {
      segments_.push_back({time_ns, id});
    }
  }

  // Intervals that nest, as the ranges of a thread do: a stack is enough. False if they do not.
  bool cut_nested() {
    std::vector<const Interval*> open;
    const auto close = [&] {
      const std::int64_t time_ns = open.back()->end_ns;
      open.pop_back();
      begin_segment(time_ns, open.empty() ? kNone : open.back()->id);
    };
    for (const Interval& one : intervals_) {
      while (!open.empty() && open.back()->end_ns <= one.start_ns) {
        close();
      }
      if (one.end_ns < one.start_ns || (!open.empty() && open.back()->end_ns < one.end_ns)) {
        return false;
      }
      if (one.start_ns < one.end_ns) {
        open.push_back(&one);
        begin_segment(one.start_ns, one.id);
      }
    }
    while (!open.empty()) {
      close();
    }
    return true;
  }

  // Intervals that overlap in any way.
  void cut_any() {
    struct Edge {
      std::int64_t time_ns;
      bool is_end;
      std::uint32_t interval;  // by start, outer ones first
    };
    std::vector<Edge> edges;
    edges.reserve(2 * intervals_.size());
    for (std::uint32_t i = 0; i < intervals_.size(); ++i) {
      edges.push_back({intervals_[i].start_ns, false, i});
      edges.push_back({intervals_[i].end_ns, true, i});
    }
    std::ranges::sort(edges, {},
                      [](const Edge& one) { return std::pair(one.time_ns, one.is_end); });
    std::set<std::uint32_t> open;
    for (const Edge& edge : edges) {
      if (edge.is_end) {
        open.erase(edge.interval);
      } else {
        open.insert(edge.interval);
      }
      begin_segment(edge.time_ns, open.empty() ? kNone : intervals_[*open.rbegin()].id);
    }
  }

  std::vector<Interval> intervals_;  // until they are cut
  std::vector<Segment> segments_;
  std::size_t hint_ = 0;
};

}  // namespace gpuwhy
