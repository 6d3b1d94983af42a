// SPDX-License-Identifier: Apache-2.0
//
// Stage times against numbers worked out by hand.
#include "analysis/stages/stage_times.h"

#include <cmath>

#include "testing.h"

namespace gpuwhy {
namespace {

StageInstance instance(std::uint32_t stage, std::int64_t start_ns, std::int64_t duration_ns,
                       std::optional<std::int64_t> tokens = std::nullopt) {
  StageInstance made;
  made.stage = stage;
  made.start_ns = start_ns;
  made.end_ns = start_ns + duration_ns;
  made.tokens = tokens;
  return made;
}

Stages stages_of(std::vector<StageInstance> instances) {
  Stages stages;
  stages.names = {row_name("prefill"), row_name("decode")};
  stages.is_nested = {false, false};
  stages.instances = std::move(instances);
  return stages;
}

TEST(StageTimes, ByHand) {
  // The first in time stands last: order means nothing.
  const auto all = time_stages(stages_of(
      {instance(0, 1000, 20), instance(1, 2000, 7), instance(0, 3000, 40), instance(0, 0, 60)}));
  ASSERT_EQ(all.size(), 2U);
  const StageTimes& prefill = all[0];
  EXPECT_EQ(prefill.stage.text(), "prefill");
  EXPECT_EQ(prefill.n, 3);
  EXPECT_EQ(prefill.num_open, 0);
  EXPECT_EQ(prefill.total_ns, 120);
  EXPECT_DOUBLE_EQ(prefill.mean_ns, 40);
  EXPECT_THAT(prefill.std_ns, Optional(20.0)) << "sqrt((400 + 0 + 400) / 2)";
  EXPECT_EQ(prefill.min_ns, 20);
  EXPECT_EQ(prefill.p50_ns, 40);
  EXPECT_EQ(prefill.p99_ns, 60);
  EXPECT_EQ(prefill.max_ns, 60);
  EXPECT_THAT(prefill.steady_mean_ns, Optional(30.0)) << "20 and 40, without the first, 60";
  EXPECT_EQ(prefill.tokens, std::nullopt);
  EXPECT_EQ(prefill.tokens_per_s, std::nullopt);
  const StageTimes& decode = all[1];
  EXPECT_EQ(decode.n, 1);
  EXPECT_DOUBLE_EQ(decode.mean_ns, 7);
  EXPECT_EQ(decode.std_ns, std::nullopt) << "one instance has no spread";
  EXPECT_EQ(decode.steady_mean_ns, std::nullopt);
  EXPECT_EQ(decode.p50_ns, 7);
  EXPECT_EQ(decode.p99_ns, 7);
}

TEST(StageTimes, PercentilesAreDurationsThatOccurred) {
  for (const int n : {1, 2, 3, 4, 50, 99, 100, 101, 200, 201}) {
    std::vector<StageInstance> instances;
    for (int i = n; i >= 1; --i) {
      instances.push_back(instance(0, 1000 * i, 10 * i));  // 10, 20, ... 10 n
    }
    const StageTimes times = time_stages(stages_of(instances))[0];
    EXPECT_EQ(times.p50_ns, 10 * static_cast<std::int64_t>(std::ceil(0.50 * n))) << n;
    EXPECT_EQ(times.p99_ns, 10 * static_cast<std::int64_t>(std::ceil(0.99 * n - 1e-9))) << n;
  }
}

TEST(StageTimes, Tokens) {
  const auto all = time_stages(
      stages_of({instance(0, 0, 2'000'000'000, 512), instance(0, 9'000'000'000, 2'000'000'000),
                 instance(1, 0, 0, 3), instance(0, 5, 0, 0)}));
  EXPECT_THAT(all[0].tokens, Optional(512));
  EXPECT_THAT(all[0].tokens_per_s, Optional(256.0)) << "512 tokens in the 2 s that carried some";
  EXPECT_THAT(all[1].tokens, Optional(3));
  EXPECT_EQ(all[1].tokens_per_s, std::nullopt) << "no time, no rate";
}

TEST(StageTimes, OpenRangesAreCountedAndNothingElse) {
  StageInstance open = instance(0, 0, 1'000'000, 100);
  open.is_open = true;
  StageInstance only_open = instance(1, 0, 50, 7);
  only_open.is_open = true;
  const auto all = time_stages(stages_of({open, instance(0, 10, 20, 5), only_open}));
  EXPECT_EQ(all[0].num_open, 1);
  EXPECT_EQ(all[0].n, 1);
  EXPECT_EQ(all[0].total_ns, 20);
  EXPECT_THAT(all[0].tokens, Optional(5));
  EXPECT_EQ(all[1].n, 0);
  EXPECT_EQ(all[1].num_open, 1);
  EXPECT_EQ(all[1].total_ns, 0);
  EXPECT_EQ(all[1].tokens, std::nullopt);
  EXPECT_EQ(all[1].std_ns, std::nullopt);
}

TEST(StageTimes, NoStagesNoTimes) {
  EXPECT_THAT(time_stages({}), IsEmpty());
  const auto all = time_stages(stages_of({}));
  ASSERT_EQ(all.size(), 2U);
  EXPECT_EQ(all[1].stage.text(), "decode");
  EXPECT_EQ(all[1].n, 0);
}

StageTimes times(const char* stage, std::int64_t n, double mean_ns,
                 std::optional<double> steady_mean_ns) {
  StageTimes made;
  made.stage = row_name(stage);
  made.n = n;
  made.mean_ns = mean_ns;
  made.steady_mean_ns = steady_mean_ns;
  return made;
}

TEST(Overheads, SteadyMeansWhereBothHaveThem) {
  const auto overheads = overheads_of({times("prefill", 2, 200, 100), times("decode", 1, 80, {})},
                                      {times("decode", 3, 100, 60), times("prefill", 2, 900, 110)});
  ASSERT_EQ(overheads.size(), 2U);
  EXPECT_EQ(overheads[0].stage.text(), "prefill");
  EXPECT_DOUBLE_EQ(overheads[0].baseline_mean_ns, 100);
  EXPECT_DOUBLE_EQ(overheads[0].profiled_mean_ns, 110);
  EXPECT_EQ(overheads[1].stage.text(), "decode");
  EXPECT_DOUBLE_EQ(overheads[1].baseline_mean_ns, 80) << "one has a first instance only";
  EXPECT_DOUBLE_EQ(overheads[1].profiled_mean_ns, 100);
  for (const StageOverhead& overhead : overheads) {
    EXPECT_FALSE(overhead.fraction || overhead.low_fraction || overhead.high_fraction);
    EXPECT_THAT(overhead.reason, testing::HasSubstr("too few instances"));
  }
}

TEST(Overheads, NoneWhereOneSideIsMissing) {
  EXPECT_THAT(overheads_of({times("prefill", 0, 0, {})}, {times("prefill", 1, 5, {})}), IsEmpty());
  EXPECT_THAT(overheads_of({times("prefill", 1, 5, {})}, {times("prefill", 0, 0, {})}), IsEmpty());
  EXPECT_THAT(overheads_of({times("prefill", 1, 5, {})}, {times("decode", 1, 5, {})}), IsEmpty());
  EXPECT_THAT(overheads_of({times("prefill", 2, 0, 0.0)}, {times("prefill", 2, 5, 5.0)}), IsEmpty())
      << "nothing can be a share of nothing";
}

// The interval is that of Welch's test on the logarithms, here with its formula by hand: eight
// instances after the first, at 2 % and at 1 % around their means.
TEST(Overheads, AnIntervalFromTheInstances) {
  const auto around = [](std::int64_t mean, std::int64_t reach, std::int64_t first) {
    std::vector<std::int64_t> values = {first};
    for (int i = 0; i < 4; ++i) {
      values.push_back(mean - reach);
      values.push_back(mean + reach);
    }
    return times_of_durations(values);
  };
  const auto slower = overheads_of({around(1000, 20, 1000)}, {around(1100, 11, 90'000)});
  ASSERT_EQ(slower.size(), 1U);
  EXPECT_NEAR(slower[0].fraction.value(), 0.1, 1e-9)
      << "without the first, which starts the profiler";
  const double error = std::hypot(0.02, 0.01) / std::sqrt(7);
  EXPECT_NEAR(slower[0].low_fraction.value(), 1.1 * std::exp(-2.365 * error) - 1, 1e-4);
  EXPECT_NEAR(slower[0].high_fraction.value(), 1.1 * std::exp(2.365 * error) - 1, 1e-4);
  const auto within = overheads_of({around(1000, 200, 1000)}, {around(990, 200, 1000)});
  EXPECT_LT(within[0].low_fraction.value(), 0);
  EXPECT_GT(within[0].high_fraction.value(), 0);
  const auto faster = overheads_of({around(1000, 20, 1000)}, {around(900, 20, 1000)});
  EXPECT_FALSE(faster[0].fraction) << "a profiler makes nothing faster";
  EXPECT_THAT(faster[0].reason, testing::HasSubstr("shorter under the profiler"));
}

}  // namespace
}  // namespace gpuwhy
