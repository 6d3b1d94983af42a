// SPDX-License-Identifier: Apache-2.0
#include "capture/stage_times.h"

#include <limits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace llmprof {
namespace {

using testing::ElementsAre;
using testing::SizeIs;

StageTime time_of(const std::vector<std::int64_t>& durations) {
  StageSamples samples;
  samples.stage = "decode_step";
  for (const std::int64_t duration : durations) {
    samples.add(duration, std::nullopt);
  }
  return stage_time(samples);
}

TEST(StageTimes, FiguresAreThoseOfTheTextbook) {
  // mean 5, sum of squared distances 32, by n - 1 = 7
  const StageTime time = time_of({9, 2, 4, 4, 4, 5, 5, 7});
  EXPECT_EQ(time.n, 8U);
  EXPECT_EQ(time.total_ns, 40);
  EXPECT_EQ(time.mean_ns, 5);
  EXPECT_NEAR(time.std_ns.value(), 2.13809, 1e-5);
  EXPECT_EQ(time.min_ns, 2);
  EXPECT_EQ(time.p50_ns, 4);
  EXPECT_EQ(time.p99_ns, 9);
  EXPECT_EQ(time.max_ns, 9);
  EXPECT_EQ(time.tokens, std::nullopt);
  EXPECT_EQ(time.tokens_per_s, std::nullopt);
}

TEST(StageTimes, PercentilesAreMeasuredValues) {
  std::vector<std::int64_t> durations;
  for (std::int64_t i = 200; i > 0; --i) {
    durations.push_back(i);
  }
  EXPECT_EQ(time_of(durations).p50_ns, 100);
  EXPECT_EQ(time_of(durations).p99_ns, 198);
  EXPECT_EQ(time_of({7}).p99_ns, 7);
  EXPECT_EQ(time_of({7}).std_ns, std::nullopt);
}

TEST(StageTimes, OpenRangesEnterNoFigure) {
  StageSamples samples;
  samples.add(10, 5);
  samples.add(std::nullopt, 100);
  const StageTime time = stage_time(samples);
  EXPECT_EQ(time.n, 1U);
  EXPECT_EQ(time.num_open, 1U);
  EXPECT_EQ(time.max_ns, 10);
  EXPECT_EQ(time.tokens, 5);
  const StageTime nothing = stage_time({});
  EXPECT_EQ(nothing.mean_ns, std::nullopt);
  EXPECT_EQ(nothing.p50_ns, std::nullopt);
}

TEST(StageTimes, TokensASecondCountOnlyTheTimeThatTheyTook) {
  StageSamples samples;
  samples.add(500'000'000, 100);
  samples.add(9'000'000'000, std::nullopt);
  const StageTime time = stage_time(samples);
  EXPECT_EQ(time.tokens, 100);
  EXPECT_EQ(time.tokens_per_s, 200);
}

TEST(StageTimes, HostileSumsDoNotOverflow) {
  constexpr auto kMost = std::numeric_limits<std::int64_t>::max();
  StageSamples samples;
  samples.add(kMost, kMost);
  samples.add(kMost, kMost);
  const StageTime time = stage_time(samples);
  EXPECT_EQ(time.total_ns, kMost);
  EXPECT_EQ(time.tokens, kMost);
}

// Ranges (domain, name, start, end) of one process, in the order of their starts.
struct Marked {
  const char* domain;
  const char* name;
  std::int64_t start_ns;
  std::int64_t end_ns;
};

TimedRun run_of(const std::vector<Marked>& marks) {
  TimedProcess process;
  for (const Marked& mark : marks) {
    TimedRange range;
    range.domain = static_cast<std::uint32_t>(process.texts.size());
    range.name = range.domain + 1;
    process.texts.insert(process.texts.end(), {mark.domain, mark.name});
    range.start_ns = mark.start_ns;
    range.end_ns = mark.end_ns;
    process.ranges.push_back(range);
  }
  return {{process}, {}};
}

std::vector<std::string> stages_of(const TimedRun& run) {
  std::vector<std::string> names;
  for (const StageTime& time : stage_times(run)) {
    names.push_back(time.stage + " " + std::to_string(time.n));
  }
  return names;
}

TEST(StageTimes, MarksOfDomainLlmAreStages) {
  const TimedRun run = run_of({{"LLM", "request", 1, 100},
                               {"LLM", "prefill", 2, 10},
                               {"NCCL", "prefill", 3, 4},
                               {"", "decode_all", 5, 6},
                               {"LLM", "decode_all", 11, 99},
                               {"LLM", "decode_step", 12, 20},
                               {"LLM", "decode_step", 21, 30},
                               {"LLM", "sampling", 22, 23}});
  EXPECT_THAT(stages_of(run), ElementsAre("request 1", "prefill 1", "decode 1", "decode_step 2"));
}

TEST(StageTimes, StepsAloneAreDecode) {
  const TimedRun run = run_of({{"LLM", "decode_step", 12, 20}, {"LLM", "decode_step", 21, 30}});
  EXPECT_THAT(stages_of(run), ElementsAre("decode 2"));
}

TEST(StageTimes, StagesOfOtherMarksAreFoundByTheCallersRule) {
  const TimedRun run = run_of({{"", "step[DECODE bs=1]", 12, 20}, {"", "idle", 21, 30}});
  const auto times =
      stage_times(run, [](std::string_view, std::string_view name) -> std::optional<std::string> {
        return name.starts_with("step[") ? std::optional<std::string>("decode") : std::nullopt;
      });
  ASSERT_THAT(times, SizeIs(1));
  EXPECT_EQ(times[0].stage, "decode");
  EXPECT_EQ(times[0].total_ns, 8);
}

}  // namespace
}  // namespace llmprof
