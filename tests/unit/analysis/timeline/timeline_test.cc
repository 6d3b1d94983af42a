// SPDX-License-Identifier: Apache-2.0
//
// Random recordings drawn in columns, each column added up once more nanosecond by nanosecond.
#include "analysis/timeline/timeline.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <random>
#include <string>

#include "analysis/profile.h"
#include "testing.h"
#include "trace_builder.h"

namespace gpuwhy {
namespace {

// One GPU, two streams, kernels of two names; a call before each; decode steps of ten.
Trace random_trace(std::size_t size, std::uint32_t seed) {
  std::mt19937 random(seed);
  const auto pick = [&](int low, int high) {
    return std::uniform_int_distribution<int>(low, high)(random);
  };
  TraceBuilder made;
  const std::uint16_t process = made.add_process();
  const std::uint16_t device = made.add_device();
  const std::uint32_t thread = made.add_thread(process);
  const std::uint32_t streams[] = {made.add_stream(process, device),
                                   made.add_stream(process, device)};
  std::int64_t at[] = {100, 100};
  std::int64_t host = 50;
  for (std::size_t i = 0; i < size; ++i) {
    const int stream = pick(0, 1);
    const std::int64_t start = std::max(at[stream], host + 3) + pick(0, 4) * pick(0, 30);
    at[stream] = start + pick(1, pick(1, 200));
    made.launch(thread, host, streams[stream], start, at[stream],
                pick(0, 1) == 0 ? "gemm" : "nccl");
    if (i % 10 == 0 && i / 10 < size / 10) {
      made.range(thread, host - 1, host + 60, "decode_step", {.domain = "LLM"});
    }
    host += pick(3, 60);
  }
  return made.finish();
}

std::int64_t sum_of(const TimelineLevel& level, std::uint16_t row) {
  std::int64_t sum = 0;
  for (const TimelineSeries& series : level.series) {
    for (const std::int64_t fill_ns : series.fill_ns) {
      sum += series.row == row ? fill_ns : 0;
    }
  }
  return sum;
}

TEST(Timeline, EveryColumnHoldsWhatRanInIt) {
  for (std::uint32_t seed = 0; seed < 40; ++seed) {
    const Profile made = profile(random_trace(60, seed), Rules(), {true});
    const Trace& trace = *made.trace;
    const Timeline& timeline = made.timeline;
    const Analysis& analysis = made.analysis;
    ASSERT_EQ(timeline.levels.size(), 1U);
    const TimelineLevel& level = timeline.levels[0];
    std::map<std::pair<std::string, std::int64_t>, std::int64_t> truth;
    for (std::size_t i = 0; i < trace.kernels.size(); ++i) {
      for (std::int64_t t = trace.kernels.start_ns[i]; t < trace.kernels.end_ns[i]; ++t) {
        ++truth[{trace.kernels.stream[i] == 0 ? "stream 7" : "stream 8",
                 (t - analysis.capture.start_ns) / level.column_ns}];
      }
    }
    std::map<std::pair<std::string, std::int64_t>, std::int64_t> found;
    for (const TimelineSeries& series : level.series) {
      if (timeline.rows[series.row].kind == TimelineRowKind::kStream) {
        for (std::size_t column = 0; column < series.fill_ns.size(); ++column) {
          if (series.fill_ns[column] != 0) {
            found[{timeline.rows[series.row].label, static_cast<std::int64_t>(column)}] +=
                series.fill_ns[column];
          }
        }
      }
    }
    EXPECT_EQ(found, truth) << "seed " << seed;
  }
}

TEST(Timeline, GapsAreTheLedgersIdleBuckets) {
  const Profile made = profile(random_trace(3000, 7), Rules(), {true});
  const Timeline& timeline = made.timeline;
  const Analysis& analysis = made.analysis;
  const LedgerRow& capture = analysis.ledgers.back();
  std::int64_t idle_ns = 0;
  for (const Bucket bucket :
       {Bucket::kGraph, Bucket::kSync, Bucket::kLaunchLate, Bucket::kQueued, Bucket::kStartedLate,
        Bucket::kUnknownIdle, Bucket::kUnrecorded, Bucket::kTail}) {
    idle_ns += capture[bucket];
  }
  ASSERT_GT(idle_ns, 0);
  for (std::uint16_t row = 0; row < timeline.rows.size(); ++row) {
    if (timeline.rows[row].kind == TimelineRowKind::kIdle) {
      EXPECT_EQ(sum_of(timeline.levels[0], row), idle_ns);
    }
  }
  ASSERT_FALSE(timeline.longest_gaps.empty());
  std::int64_t longest = 0;
  for (std::size_t i = 0; i < timeline.slices.size(); ++i) {
    if (timeline.rows[timeline.slices.row[i]].kind == TimelineRowKind::kIdle) {
      longest = std::max(longest, timeline.slices.duration_ns[i]);
    }
  }
  EXPECT_EQ(timeline.longest_gaps[0].duration_ns, longest);
}

// The page must name the cause that the tables name.
TEST(Timeline, GapsHaveTheCausesOfTheLedger) {
  TraceBuilder builder;
  const std::uint16_t process = builder.add_process();
  const std::uint32_t thread = builder.add_thread(process);
  const std::uint32_t stream = builder.add_stream(process, builder.add_device());
  std::int64_t at_ns = 100;
  for (int i = 0; i < 40; ++i) {
    builder.launch(thread, at_ns, stream, at_ns + 10, at_ns + 1000, "gemm");
    at_ns += i % 10 == 9 ? 20'000'000 : 3000;  // a pause of the CPU, or a short launch gap
  }
  const Profile made = profile(builder.finish(), Rules(), {true});
  const std::vector<std::string> names = gap_cause_names();
  std::map<std::string, std::int64_t> in_tables;
  const LedgerRow& capture = made.analysis.ledgers.back();
  for (const IdleRow& cause : causes_of(made.analysis.idle_causes, capture)) {
    if (cause.bucket == Bucket::kLaunchLate && cause.kind != IdleKind::kLaunching &&
        cause.kind != IdleKind::kWaiting) {
      in_tables[std::string("launch_late.") +
                kIdleKindNames[static_cast<std::size_t>(cause.kind)]] += cause.total_ns;
    }
  }
  std::map<std::string, std::int64_t> drawn;
  for (const TimelineSeries& series : made.timeline.levels[0].series) {
    if (made.timeline.rows[series.row].kind == TimelineRowKind::kIdle &&
        names[series.category].find('.') != std::string::npos) {
      drawn[names[series.category]] +=
          std::accumulate(series.fill_ns.begin(), series.fill_ns.end(), std::int64_t{0});
    }
  }
  EXPECT_FALSE(drawn.empty());
  EXPECT_EQ(drawn, in_tables);
}

TEST(Timeline, LargeRecordingsKeepTheirWindowsAndEveryColumn) {
  const Trace trace = random_trace(5000, 3);
  const Rules rules;
  const Stages stages = find_stages(trace, rules, 0, 10'000'000);
  const Attribution attribution = attribute(trace, stages);
  TimelineOptions options;
  options.most_work = 1000;
  options.most_window_work = 200;
  TimelineMaker maker(trace, {trace, rules}, stages, attribution,
                      find_step_windows(trace, stages, attribution), 0, 10'000'000, options);
  maker.add_work();
  const Timeline timeline = maker.finish();
  EXPECT_FALSE(timeline.is_whole);
  ASSERT_EQ(timeline.levels.size(), 2U);
  EXPECT_GT(timeline.num_kept, 0);
  EXPECT_LE(timeline.num_kept, 200);
  ASSERT_FALSE(timeline.windows.empty());
  EXPECT_NE(timeline.windows[0].label.find("slowest"), std::string::npos);
  std::int64_t busy_ns = 0;
  for (std::size_t i = 0; i < trace.kernels.size(); ++i) {
    busy_ns += trace.kernels.end_ns[i] - trace.kernels.start_ns[i];
    // Whatever runs in a window is there.
    for (const CloseUp& window : timeline.windows) {
      if (trace.kernels.start_ns[i] >= window.start_ns &&
          trace.kernels.end_ns[i] <= window.end_ns) {
        const auto& starts = timeline.slices.start_ns;
        EXPECT_NE(std::find(starts.begin(), starts.end(), trace.kernels.start_ns[i]), starts.end());
      }
    }
  }
  for (const TimelineLevel& level : timeline.levels) {
    std::int64_t sum = 0;
    for (std::uint16_t row = 0; row < timeline.rows.size(); ++row) {
      sum += sum_of(level, row);
    }
    EXPECT_EQ(sum, busy_ns);
  }
}

// Six decode steps, each with one kernel at `starts`. The last one has no period.
std::vector<std::string> windows_of(const std::vector<std::int64_t>& starts) {
  TraceBuilder builder;
  const std::uint16_t process = builder.add_process();
  const std::uint32_t thread = builder.add_thread(process);
  const std::uint32_t stream = builder.add_stream(process, builder.add_device());
  for (const std::int64_t at_ns : starts) {
    builder.range(thread, at_ns - 20, at_ns + 50, "decode_step", {.domain = "LLM"});
    builder.launch(thread, at_ns - 10, stream, at_ns, at_ns + 30, "gemm");
  }
  std::vector<std::string> labels;
  for (const CloseUp& window : profile(builder.finish(), Rules(), {true}).timeline.windows) {
    labels.push_back(window.label);
  }
  return labels;
}

TEST(Timeline, EquallyLongStepsAreNotSlow) {
  EXPECT_THAT(windows_of({100, 200, 300, 400, 500, 600}),
              testing::ElementsAre("decode 2, the median", "decode 3, after the median",
                                   "decode 1, before the median"));
}

TEST(Timeline, AStepIsRankedByItsPeriod) {
  // Step 4 is the slowest by its period of 300; the last has the longest mark of all, and no
  // period.
  const std::vector<std::string> labels = windows_of({100, 200, 350, 450, 550, 850});
  EXPECT_THAT(labels, testing::Contains("decode 4, the slowest"));
  EXPECT_THAT(labels, testing::Contains("decode 1, the second slowest"));
  EXPECT_THAT(labels, testing::Not(testing::Contains(testing::StartsWith("decode 5"))));
}

TEST(Timeline, NothingRecordedIsNoTimeline) {
  const Timeline timeline = profile(Trace(), Rules(), {true}).timeline;
  EXPECT_EQ(timeline.duration_ns, 0);
  EXPECT_TRUE(timeline.rows.empty());
}

}  // namespace
}  // namespace gpuwhy
