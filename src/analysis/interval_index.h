// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <set>
#include <utility>
#include <vector>

#include "trace/trace.h"

namespace llmprof {

// Lookup of the innermost interval that covers a time: of those that do, the one that began last.
// Intervals may overlap in any way; they are converted to disjoint segments. Lookups in time order
// take constant time.
class IntervalIndex {
 public:
  void add(std::int64_t start_ns, std::int64_t end_ns, std::uint32_t id) {
    intervals_.push_back({start_ns, end_ns, id});
  }

  void prepare() {
    struct Edge {
      std::int64_t time_ns;
      bool is_end;
      std::uint32_t interval;
    };
    std::vector<Edge> edges;
    edges.reserve(2 * intervals_.size());
    for (std::uint32_t i = 0; i < intervals_.size(); ++i) {
      edges.push_back({intervals_[i].start_ns, false, i});
      edges.push_back({intervals_[i].end_ns, true, i});
    }
    std::sort(edges.begin(), edges.end(), [](const Edge& a, const Edge& b) {
      return std::pair(a.time_ns, a.is_end) < std::pair(b.time_ns, b.is_end);
    });
    // By start; of those that start together the shortest is last: the last is the innermost.
    const auto inwards = [&](std::uint32_t a, std::uint32_t b) {
      const Interval& x = intervals_[a];
      const Interval& y = intervals_[b];
      return std::tuple(x.start_ns, -x.end_ns, x.id, a) <
             std::tuple(y.start_ns, -y.end_ns, y.id, b);
    };
    std::set<std::uint32_t, decltype(inwards)> open(inwards);
    for (std::size_t e = 0; e < edges.size(); ++e) {
      if (edges[e].is_end) {
        open.erase(edges[e].interval);
      } else {
        open.insert(edges[e].interval);
      }
      const bool is_last_here = e + 1 == edges.size() || edges[e + 1].time_ns != edges[e].time_ns;
      const std::uint32_t innermost = open.empty() ? kNone : intervals_[*open.rbegin()].id;
      if (is_last_here && (segments_.empty() || segments_.back().id != innermost)) {
        segments_.push_back({edges[e].time_ns, innermost});
      }
    }
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
      const auto after =
          std::upper_bound(segments_.begin(), segments_.end(), time_ns,
                           [](std::int64_t t, const Segment& s) { return t < s.start_ns; });
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

  std::vector<Interval> intervals_;
  std::vector<Segment> segments_;
  std::size_t hint_ = 0;
};

}  // namespace llmprof
