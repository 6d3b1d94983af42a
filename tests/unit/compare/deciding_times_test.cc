// SPDX-License-Identifier: Apache-2.0

#include "compare/compare.h"
#include "compare/compared_rows.h"
#include "testing.h"

namespace gpuwhy {
namespace {

constexpr const char* kLength = "stages[stage=all].host_median_ns";
constexpr const char* kPace = "pace.time_ns";

// A recording of 2 s without marks, in which a kernel ran `calls` times.
RunSummary timed_run(std::int64_t calls, std::int64_t recording_ns,
                     const std::string& kernel = "gemm") {
  RunSummary run;
  run.label = "run";
  run.launches = calls;
  run.recording_ns = recording_ns;
  run.stages = {stage_row("all", 1)};
  run.metrics = {{kLength, "ns", static_cast<double>(recording_ns), false, true, ""}};
  run.kernels = {kernel_row(kernel, "all", "gemm", calls, 1'000'000)};
  return run;
}

std::vector<RunSummary> timed_side(std::int64_t calls, const std::string& kernel = "gemm") {
  std::vector<RunSummary> side;
  for (std::int64_t i = 0; i < 6; ++i) {
    side.push_back(timed_run(calls + i, 2'000'000'000 + 1000 * i, kernel));
  }
  return side;
}

// Marks of `host_ns` whose work takes `gpu_ns`.
RunSummary marked_run(double host_ns, double gpu_ns, bool has_period = false) {
  RunSummary run;
  run.label = "run";
  run.is_marked = true;
  run.launches = 10;
  run.stages = {stage_row("decode", 100)};
  run.stages[0].is_host_ahead = gpu_ns > host_ns;
  run.metrics = {{"stages[stage=decode].host_median_ns", "ns", host_ns, false, true, "decode"},
                 {"steps[stage=decode].gpu_window_median_ns", "ns", gpu_ns, false, false, ""}};
  if (has_period) {
    run.metrics.push_back(
        {"steps[stage=decode].period_median_ns", "ns", gpu_ns + 10, false, false, "decode"});
  }
  return run;
}

const MetricChange* gated_metric(const Comparison& comparison, const std::string& key) {
  for (const MetricChange& row : comparison.metrics) {
    if (row.key == key && row.is_gated) {
      return &row;
    }
  }
  return nullptr;
}

CompareOptions allowing(std::vector<std::string> facts) {
  CompareOptions options;
  options.allowed = std::move(facts);
  return options;
}

TEST(DecidingTimes, AnAllowanceForLaunchesDoesNotHideALowerPace) {
  const Comparison slower = compare_runs(timed_side(1000), timed_side(800), allowing({"launches"}));
  EXPECT_EQ(slower.verdict, Decision::kRegress);
  EXPECT_THAT(slower.sentence(), HasSubstr("slower: time for the same work +24.9"));
  EXPECT_EQ(gated_metric(slower, kLength), nullptr);
  const Comparison faster = compare_runs(timed_side(800), timed_side(1000), allowing({"launches"}));
  EXPECT_EQ(faster.verdict, Decision::kPass);
}

TEST(DecidingTimes, OneRunPerSideOfALowerPaceIsNotDecided) {
  const Comparison comparison = compare_runs(
      {timed_run(1000, 2'000'000'000)}, {timed_run(800, 2'000'000'000)}, allowing({"launches"}));
  EXPECT_EQ(comparison.verdict, Decision::kInconclusive);
  EXPECT_NEAR(*gated_metric(comparison, kPace)->ratio, 1.25, 1e-9);
}

TEST(DecidingTimes, EqualLengthsOfOtherKernelsDecideNothing) {
  const Comparison comparison =
      compare_runs(timed_side(1000), timed_side(800, "other"), allowing({"launches"}));
  EXPECT_EQ(comparison.verdict, Decision::kInconclusive);
  EXPECT_THAT(comparison.sentence(), HasSubstr("a clock ended them"));
}

TEST(DecidingTimes, TheLengthDecidesWhereTheWorkIsTheSame) {
  std::vector<RunSummary> base;
  std::vector<RunSummary> candidate;
  for (std::int64_t i = 0; i < 6; ++i) {
    base.push_back(timed_run(1000, 2'000'000'000 + i));
    candidate.push_back(timed_run(1000, 2'030'000'000 + i));
  }
  const Comparison comparison = compare_runs(base, candidate, {});
  EXPECT_EQ(comparison.verdict, Decision::kRegress);
  EXPECT_NE(gated_metric(comparison, kLength), nullptr);
}

TEST(DecidingTimes, MarksThatEndBeforeTheirWorkDoNotDecide) {
  // The CPU got faster, the GPU slower: the user waits for the GPU.
  std::vector<RunSummary> base;
  std::vector<RunSummary> candidate;
  for (int i = 0; i < 6; ++i) {
    base.push_back(marked_run(2000 + i, 10'000 + i));
    candidate.push_back(marked_run(1000 + i, 12'000 + i));
  }
  const Comparison comparison = compare_runs(base, candidate, {});
  EXPECT_EQ(comparison.verdict, Decision::kRegress);
  EXPECT_THAT(comparison.sentence(), HasSubstr("decode on the GPU (median) +20"));
  EXPECT_EQ(gated_metric(comparison, "stages[stage=decode].host_median_ns"), nullptr);
}

TEST(DecidingTimes, OneSideThatRunsAheadIsEnough) {
  const Comparison comparison =
      compare_runs({marked_run(20'000, 10'000)}, {marked_run(2000, 10'000)}, {});
  EXPECT_NE(gated_metric(comparison, "steps[stage=decode].gpu_window_median_ns"), nullptr);
}

TEST(DecidingTimes, TheDistanceOfStepsDecidesIfEveryRunHasOne) {
  constexpr const char* kPeriod = "steps[stage=decode].period_median_ns";
  const RunSummary with = marked_run(2000, 10'000, true);
  EXPECT_NE(gated_metric(compare_runs({with}, {with}, {}), kPeriod), nullptr);
  const Comparison mixed = compare_runs({with}, {marked_run(2000, 10'000)}, {});
  EXPECT_EQ(gated_metric(mixed, kPeriod), nullptr);
  EXPECT_NE(gated_metric(mixed, "steps[stage=decode].gpu_window_median_ns"), nullptr);
}

TEST(DecidingTimes, MarksThatCoverTheirWorkDecide) {
  const Comparison comparison =
      compare_runs({marked_run(20'000, 10'000)}, {marked_run(20'000, 10'000)}, {});
  EXPECT_NE(gated_metric(comparison, "stages[stage=decode].host_median_ns"), nullptr);
}

// One run of a side, `copies` times.
std::vector<RunSummary> copies(double host_ns, const std::string& identity, int count) {
  std::vector<RunSummary> side;
  for (int i = 0; i < count; ++i) {
    side.push_back(marked_run(host_ns, 100));
    side.back().identity = identity;
    side.back().label = identity + std::to_string(i);
  }
  return side;
}

TEST(DistinctRuns, ARunThatIsGivenTwiceCountsOnce) {
  const Comparison comparison = compare_runs(copies(1e6, "a", 6), copies(2e6, "b", 6), {});
  EXPECT_EQ(comparison.base.size(), 1U);
  EXPECT_EQ(comparison.candidate.size(), 1U);
  EXPECT_EQ(comparison.verdict, Decision::kInconclusive) << "six copies are one run";
  ASSERT_EQ(comparison.repeated.size(), 10U);
  EXPECT_EQ(comparison.repeated[0].label, "a1");
  EXPECT_EQ(comparison.repeated[0].same_as, "a0");
}

TEST(DistinctRuns, RunsWithoutIdentityAreAllKept) {
  std::vector<RepeatedRun> repeated;
  EXPECT_EQ(distinct_runs(copies(1e6, "", 3), repeated).size(), 3U);
  EXPECT_TRUE(repeated.empty());
}

TEST(DistinctRuns, TheSameRunOnBothSidesIsNotComparable) {
  const Comparison comparison = compare_runs(copies(1e6, "a", 1), copies(1e6, "a", 1), {});
  EXPECT_EQ(comparison.verdict, Decision::kInvalid);
  EXPECT_THAT(comparison.sentence(), HasSubstr("the same run is on both sides"));
  EXPECT_FALSE(has_failed_run(comparison));
  EXPECT_NE(compare_runs(copies(1e6, "a", 1), copies(1e6, "a", 1), allowing({"runs"})).verdict,
            Decision::kInvalid);
}

TEST(DistinctRuns, SelfTestsAndLimitsCountARunOnce) {
  EXPECT_EQ(self_test(copies(1e6, "a", 12), {}).num_runs, 1);
  CompareOptions options;
  options.budgets = {{"stages[stage=decode].host_median_ns", std::nullopt, 2e6, std::nullopt}};
  EXPECT_EQ(judge_limits(copies(1e6, "a", 3), options).candidate.size(), 1U);
}

// Reports give the period of steps where there is one; a comparison gives the same number.
TEST(DecidingTimes, TheTimeOfAStepIsThatOfTheReport) {
  const std::string period = "steps[stage=decode].period_median_ns";
  RunSummary base = marked_run(100, 90, true);
  RunSummary candidate = marked_run(100, 60, true);
  base.stages[0].step_key = candidate.stages[0].step_key = period;
  const Comparison comparison = compare_runs({base}, {candidate}, {});
  ASSERT_NE(gated_metric(comparison, period), nullptr);
  EXPECT_DOUBLE_EQ(*gated_metric(comparison, period)->base, 100);
  EXPECT_DOUBLE_EQ(*gated_metric(comparison, period)->candidate, 70);
  EXPECT_EQ(gated_metric(comparison, "stages[stage=decode].host_median_ns"), nullptr);
  // Two kinds of time are not compared with each other.
  candidate.stages[0].step_key = "stages[stage=decode].host_median_ns";
  const Comparison mixed = compare_runs({base}, {candidate}, {});
  EXPECT_EQ(gated_metric(mixed, period), nullptr);
  EXPECT_NE(gated_metric(mixed, "stages[stage=decode].host_median_ns"), nullptr);
}

TEST(DecidingTimes, ATimeThatNoRunHasDoesNotDecide) {
  std::vector<RunSummary> sides[2];
  for (int i = 0; i < 10; ++i) {
    RunSummary run;
    run.label = "run";
    run.metrics = {{"aggregates.program_ns", "ns", 1e8 + i, false, true, ""},
                   {kLength, "ns", 0, false, true, ""}};
    sides[i % 2].push_back(run);
  }
  const Comparison comparison = compare_runs(sides[0], sides[1], {});
  EXPECT_EQ(comparison.verdict, Decision::kPass) << comparison.sentence();
  EXPECT_EQ(gated_metric(comparison, kLength), nullptr);
  // Where one run has it, what the others lack is told.
  sides[0][0].metrics[1].value = 5;
  EXPECT_EQ(compare_runs(sides[0], sides[1], {}).verdict, Decision::kInconclusive);
}

}  // namespace
}  // namespace gpuwhy
