// SPDX-License-Identifier: Apache-2.0
//
// The innermost interval around a time, against a look at every interval.
#include "trace/interval_index.h"

#include <algorithm>
#include <random>
#include <tuple>
#include <vector>

#include "testing.h"

namespace gpuwhy {
namespace {

struct Made {
  std::int64_t start;
  std::int64_t end;
};

// Of those that cover the time the one that began last; of these the shortest, then the last added.
std::uint32_t innermost(const std::vector<Made>& intervals, std::int64_t time) {
  std::uint32_t best = kNone;
  const auto key = [&](std::uint32_t i) {
    return std::tuple(intervals[i].start, -intervals[i].end, i);
  };
  for (std::uint32_t i = 0; i < intervals.size(); ++i) {
    const bool covers = intervals[i].start <= time && time < intervals[i].end;
    if (covers && (best == kNone || key(best) < key(i))) {
      best = i;
    }
  }
  return best;
}

void expect_same(const std::vector<Made>& intervals) {
  IntervalIndex index;
  for (std::uint32_t i = 0; i < intervals.size(); ++i) {
    index.add(intervals[i].start, intervals[i].end, i);
  }
  index.prepare();
  for (const std::int64_t time : {25, 0, 49, -1, 50}) {
    EXPECT_EQ(index.find(time), innermost(intervals, time)) << "out of order, at " << time;
  }
  for (std::int64_t time = -2; time < 60; ++time) {
    ASSERT_EQ(index.find(time), innermost(intervals, time)) << "at " << time;
  }
}

// Splits [start, end) into intervals that lie inside each other or apart.
void nest(std::mt19937& random, std::int64_t start, std::int64_t end, std::vector<Made>& into) {
  if (start >= end || into.size() > 40) {
    return;
  }
  const auto pick = [&](std::int64_t least, std::int64_t most) {
    return std::uniform_int_distribution<std::int64_t>(least, most)(random);
  };
  const std::int64_t from = pick(start, end);
  const std::int64_t to = pick(from, end);
  into.push_back({from, to});
  nest(random, from, to, into);
  nest(random, to, end, into);
}

TEST(IntervalIndex, IntervalsThatNest) {
  for (unsigned seed = 0; seed < 500; ++seed) {
    std::mt19937 random(seed);
    std::vector<Made> intervals;
    nest(random, 0, 50, intervals);
    std::shuffle(intervals.begin(), intervals.end(), random);
    SCOPED_TRACE(seed);
    expect_same(intervals);
  }
}

TEST(IntervalIndex, IntervalsThatOverlapInAnyWay) {
  for (unsigned seed = 0; seed < 500; ++seed) {
    std::mt19937 random(seed);
    std::vector<Made> intervals(seed % 12);
    for (Made& one : intervals) {
      one.start = std::uniform_int_distribution<std::int64_t>(0, 40)(random);
      one.end = one.start + std::uniform_int_distribution<std::int64_t>(0, 12)(random);
    }
    SCOPED_TRACE(seed);
    expect_same(intervals);
  }
}

}  // namespace
}  // namespace gpuwhy
