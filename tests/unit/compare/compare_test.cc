// SPDX-License-Identifier: Apache-2.0
#include "compare/compare.h"

#include <cmath>
#include <functional>
#include <stdexcept>

#include "compare/compared_rows.h"
#include "compare/statistics.h"
#include "testing.h"

namespace gpuwhy {
namespace {

RunSummary make_run(double tpot_ns, const std::string& label = "run") {
  RunSummary run;
  run.label = label;
  run.is_marked = true;
  run.launches = 10;
  run.facts = {{"gpu", "1 x H100"}, {"driver", "550"}};
  run.stages = {stage_row("decode", 100, 100)};
  run.metrics = {{"aggregates.tpot.p50_ns", "ns", tpot_ns, false, true, ""},
                 {"aggregates.decode_tokens_per_s", "1/s", 1e9 / tpot_ns, true, false, ""}};
  return run;
}

std::vector<RunSummary> make_side(double tpot_ns, std::size_t repeats) {
  std::vector<RunSummary> side;
  for (std::size_t i = 0; i < repeats; ++i) {
    side.push_back(make_run(tpot_ns * (1 + 0.0001 * static_cast<double>(i))));
  }
  return side;
}

KernelRow make_kernel(const std::string& name, const std::string& family, std::int64_t calls,
                      std::int64_t total_ns) {
  KernelRow row = kernel_row(name, "decode", family, calls, total_ns);
  row.shapes = {"1x1x1"};
  return row;
}

// Of two sizes.
KernelRow sized_kernel(const LaunchSums& a, const LaunchSums& b) {
  KernelRow row = make_kernel("k", "gemm", a.calls + b.calls, a.total_ns + b.total_ns);
  row.by_shape = {{a, "a"}, {b, "b"}};
  return row;
}

const MetricChange& metric_of(const Comparison& comparison, const std::string& key) {
  for (const MetricChange& row : comparison.metrics) {
    if (row.key == key) {
      return row;
    }
  }
  throw std::runtime_error("no metric " + key);
}

TEST(Compare, FiveRunsASideThatAreSlowerRegress) {
  const Comparison comparison = compare_runs(make_side(1e7, 5), make_side(1.05e7, 5), {});
  EXPECT_EQ(comparison.verdict, Decision::kRegress);
  const MetricChange& tpot = metric_of(comparison, "aggregates.tpot.p50_ns");
  EXPECT_NEAR(*tpot.ratio, 1.05, 1e-3);
  EXPECT_GT(*tpot.ratio_low, 1.04);
  EXPECT_NEAR(*tpot.p, 2.0 / 252, 1e-9);
  // Fewer tokens a second are worse too.
  EXPECT_EQ(metric_of(comparison, "aggregates.decode_tokens_per_s").change, Change::kWorse);
}

// With skewed sides the ratio of the medians is another number than the median of the ratios.
TEST(Compare, AnIntervalHasItsLevelAndHoldsTheOneChangeThatIsPrinted) {
  const double base[] = {10, 10.01, 10.02, 10.03, 14, 15};
  const double candidate[] = {12, 12.01, 12.6, 13, 13.1, 20};
  std::vector<RunSummary> sides[2];
  for (std::size_t i = 0; i < 6; ++i) {
    sides[0].push_back(make_run(base[i]));
    sides[1].push_back(make_run(candidate[i]));
  }
  const Comparison comparison = compare_runs(sides[0], sides[1], {});
  const MetricChange& tpot = metric_of(comparison, "aggregates.tpot.p50_ns");
  EXPECT_GT(std::abs(*tpot.ratio - *tpot.candidate / *tpot.base), 0.001);
  EXPECT_LE(*tpot.ratio_low, *tpot.ratio);
  EXPECT_GE(*tpot.ratio_high, *tpot.ratio);
  EXPECT_DOUBLE_EQ(*tpot.interval_level, 0.98);
  // Where nothing got slower, the interval is the one that shows it: its slow end is within 1 %.
  const Comparison same = compare_runs(make_side(1e7, 6), make_side(1.004e7, 6), {});
  EXPECT_EQ(same.verdict, Decision::kPass);
  const MetricChange& row = metric_of(same, "aggregates.tpot.p50_ns");
  EXPECT_DOUBLE_EQ(*row.interval_level, 0.9);
  EXPECT_LT(*row.ratio_high, 1.01);
}

TEST(Compare, FourRunsCannotTellAndSayHowManyWould) {
  const Comparison comparison = compare_runs(make_side(1e7, 4), make_side(2e7, 4), {});
  EXPECT_EQ(comparison.verdict, Decision::kInconclusive);
  EXPECT_EQ(metric_of(comparison, "aggregates.tpot.p50_ns").repeats_needed, 5);
  EXPECT_EQ(least_repeats(0.01), 5);
  EXPECT_EQ(least_repeats(0.001), 7);  // C(12, 6) = 924
}

TEST(Compare, HowManyRunsAGateNeedsHasOneAnswer) {
  for (const std::size_t num_base : {1, 2, 5}) {
    const Comparison comparison = compare_runs(make_side(1e7, num_base), make_side(1e7, 1), {});
    EXPECT_EQ(metric_of(comparison, "aggregates.tpot.p50_ns").repeats_needed, 5) << num_base;
  }
}

TEST(Compare, AnotherMixOfSizesIsNotALongerKernel) {
  RunSummary base = make_run(1e7);
  RunSummary candidate = base;
  base.kernels = {sized_kernel({10, 1000}, {10, 100})};
  candidate.kernels = {sized_kernel({15, 1500}, {10, 100})};
  const Comparison by_size = compare_runs({base}, {candidate}, {});
  ASSERT_EQ(by_size.kernels.size(), 1U);
  EXPECT_EQ(by_size.kernels[0].calls_ns, 500);
  EXPECT_EQ(by_size.kernels[0].duration_ns, 0);
  candidate.kernels[0].by_shape.clear();
  EXPECT_GT(compare_runs({base}, {candidate}, {}).kernels[0].duration_ns, 0) << "sizes are unknown";
}

TEST(Compare, AKernelThatIsGoneOrNewIsADifferenceOfLaunches) {
  RunSummary base = make_run(1e7);
  RunSummary candidate = base;
  base.kernels = {sized_kernel({10, 1000}, {10, 100})};
  candidate.kernels.clear();
  for (const bool is_gone : {true, false}) {
    const Comparison comparison =
        is_gone ? compare_runs({base}, {candidate}, {}) : compare_runs({candidate}, {base}, {});
    ASSERT_EQ(comparison.kernels.size(), 1U);
    EXPECT_EQ(comparison.kernels[0].calls_ns, is_gone ? -1100 : 1100);
    EXPECT_EQ(comparison.kernels[0].duration_ns, 0);
  }
}

TEST(Compare, AnImprovementPassesAndIsNamed) {
  const Comparison comparison = compare_runs(make_side(1e7, 6), make_side(0.9e7, 6), {});
  EXPECT_EQ(comparison.verdict, Decision::kPass);
  EXPECT_THAT(comparison.sentence(),
              HasSubstr("faster: time per token (p50) -10.00 % (98 % interval -10.0"));
}

TEST(Compare, LessThanTheSmallestEffectPasses) {
  const Comparison comparison = compare_runs(make_side(1e7, 9), make_side(1.003e7, 9), {});
  EXPECT_EQ(comparison.verdict, Decision::kPass);
  CompareOptions strict;
  strict.smallest_effect = 0.001;
  EXPECT_EQ(compare_runs(make_side(1e7, 9), make_side(1.003e7, 9), strict).verdict,
            Decision::kRegress);
}

TEST(Compare, OneRunASideIsNeverAVerdict) {
  RunSummary base = make_run(1e7);
  RunSummary candidate = make_run(2e7);
  base.metrics[0].steps = "decode";
  base.steps = {step_row("decode", std::vector<double>(64, 1e7))};
  candidate.steps = {step_row("decode", std::vector<double>(64, 2e7))};
  const Comparison comparison = compare_runs({base}, {candidate}, {});
  EXPECT_EQ(comparison.verdict, Decision::kInconclusive);
  const MetricChange& tpot = metric_of(comparison, "aggregates.tpot.p50_ns");
  EXPECT_EQ(tpot.method, "steps of one run");
  EXPECT_DOUBLE_EQ(*tpot.ratio_low, 2.0);
}

TEST(Compare, AnEmptyCandidateIsNoWinWhateverIsAllowed) {
  RunSummary empty;
  empty.label = "empty";
  empty.absent = "no kernel and no stage";
  CompareOptions options;
  options.allowed = comparable_facts();
  const Comparison comparison = compare_runs(make_side(1e7, 5), {empty}, options);
  EXPECT_EQ(comparison.verdict, Decision::kInvalid);
  EXPECT_THAT(comparison.sentence(), HasSubstr("a run failed or is empty: empty: no kernel"));
  for (const MetricChange& row : comparison.metrics) {
    EXPECT_EQ(row.change, Change::kNotJudged);
  }
}

TEST(Compare, AnotherGpuIsInvalidUnlessItIsUnderTest) {
  std::vector<RunSummary> candidate = make_side(0.5e7, 5);
  for (RunSummary& run : candidate) {
    run.facts = {{"gpu", "1 x B200"}, {"driver", "560"}};
  }
  const Comparison comparison = compare_runs(make_side(1e7, 5), candidate, {});
  EXPECT_EQ(comparison.verdict, Decision::kInvalid);
  ASSERT_EQ(comparison.facts.size(), 2U);
  EXPECT_EQ(comparison.facts[0].fact, "gpu");
  EXPECT_FALSE(comparison.facts[1].breaks);  // the driver is shown
  CompareOptions options;
  options.allowed = {"gpu"};
  EXPECT_EQ(compare_runs(make_side(1e7, 5), candidate, options).verdict, Decision::kPass);
}

TEST(Compare, OtherWorkIsInvalid) {
  const auto broken_by = [](const std::function<void(RunSummary&)>& change) {
    std::vector<RunSummary> candidate = make_side(1e7, 5);
    change(candidate[2]);
    const std::vector<FactDifference> facts = check_comparable(make_side(1e7, 5), candidate, {});
    return facts.empty() || !facts[0].breaks ? std::string() : facts[0].fact;
  };
  EXPECT_EQ(broken_by([](RunSummary&) {}), "");
  EXPECT_EQ(broken_by([](RunSummary& run) { run.stages[0].num_instances = 90; }), "instances");
  EXPECT_EQ(broken_by([](RunSummary& run) { run.stages[0].tokens = 200; }), "tokens");
  EXPECT_EQ(broken_by([](RunSummary& run) { run.stages[0].stage = row_name("prefill"); }),
            "stages");
  EXPECT_EQ(broken_by([](RunSummary& run) { run.launches = 5; }), "");  // fused, of marked stages
  EXPECT_EQ(broken_by([](RunSummary& run) {
              run.launches = 5;
              run.is_marked = false;
            }),
            "launches");
  EXPECT_EQ(broken_by([](RunSummary& run) { run.launches = 0; }), "content");
}

// An unmarked recording of `recording_ns` whose kernels ran so often.
RunSummary make_window(std::int64_t recording_ns, std::int64_t calls) {
  RunSummary run = make_run(1e7);
  run.is_marked = false;
  run.recording_ns = recording_ns;
  run.stages = {stage_row("all", 1)};
  run.metrics = {{"stages[stage=all].host_median_ns", "ns", double(recording_ns), false, true, ""}};
  run.kernels = {make_kernel("gemm", "gemm", calls, calls * 20),
                 make_kernel("norm", "norm", calls * 2, calls * 10)};
  run.launches = calls * 3;
  run.kernel_ns = calls * 30;
  return run;
}

TEST(Pace, FewerCallsInTheSameTimeAreLessWorkPerSecond) {
  const auto pace = pace_change(make_window(2'000'000, 100), make_window(2'010'000, 80));
  ASSERT_TRUE(pace.has_value());
  EXPECT_DOUBLE_EQ(pace->work_ratio, 0.8);
  EXPECT_NEAR(pace->time_ratio(), 1.25625, 1e-9);
}

TEST(Pace, IsSilentWhereTheLengthOrTheKernelsDiffer) {
  const RunSummary base = make_window(2'000'000, 100);
  EXPECT_FALSE(pace_change(base, make_window(1'600'000, 80)).has_value()) << "less was recorded";
  EXPECT_FALSE(pace_change(base, make_window(2'000'000, 100)).has_value()) << "the same work";
  EXPECT_FALSE(pace_change(base, make_window(0, 80)).has_value()) << "the length is not known";
  RunSummary other = make_window(2'000'000, 80);
  other.kernels[0].kernel_name = "gemm_fused";
  EXPECT_FALSE(pace_change(base, other).has_value()) << "other kernels";
}

// The time of a pass judges where a clock ended both recordings.
TEST(Compare, RecordingsOfEqualLengthAreComparedByPass) {
  const auto window = [](std::int64_t recording_ns, std::int64_t calls, double period_ns) {
    RunSummary run = make_window(recording_ns, calls);
    run.metrics.push_back(
        {"structure.passes[pass=forward].period_median_ns", "ns", period_ns, false, true, ""});
    return run;
  };
  const auto verdict = [&](std::int64_t recording_ns) {
    return compare_runs(std::vector<RunSummary>(5, window(2'000'000, 100, 20'000)),
                        std::vector<RunSummary>(5, window(recording_ns, 80, 25'000)), {});
  };
  const Comparison equal = verdict(2'000'000);
  EXPECT_EQ(equal.verdict, Decision::kRegress) << equal.sentence();
  EXPECT_THAT(equal.sentence(),
              HasSubstr("time from one forward pass to the next (median) +25.00 %"));
  ASSERT_EQ(equal.facts.size(), 1U);
  EXPECT_EQ(equal.facts[0].fact, "launches");
  EXPECT_FALSE(equal.facts[0].breaks);
  EXPECT_EQ(verdict(1'600'000).verdict, Decision::kInvalid) << "less work in less time";
  EXPECT_EQ(compare_runs({make_window(2'000'000, 100)}, {make_window(2'000'000, 80)}, {}).verdict,
            Decision::kInvalid)
      << "nothing tells the time of a step";
}

TEST(Compare, InstancesMayDifferInRecordingsOfEqualLength) {
  std::vector<RunSummary> base = make_side(1e7, 5);
  std::vector<RunSummary> candidate = make_side(1.05e7, 5);
  for (std::vector<RunSummary>* side : {&base, &candidate}) {
    for (RunSummary& run : *side) {
      run.recording_ns = 2'000'000'000;
    }
  }
  for (RunSummary& run : candidate) {
    run.stages[0].num_instances = run.stages[0].tokens.emplace(90);
  }
  const Comparison comparison = compare_runs(base, candidate, {});
  EXPECT_EQ(comparison.verdict, Decision::kRegress) << comparison.sentence();
  for (RunSummary& run : candidate) {
    run.stages[0].tokens = 180;  // twice as many in each
  }
  EXPECT_EQ(compare_runs(base, candidate, {}).verdict, Decision::kInvalid);
}

TEST(MovedWaits, AreLessOnOneGpuAndMoreOnAnother) {
  const auto change = [](const std::string& device, std::int64_t before, std::int64_t after) {
    const auto ledger = [&](std::int64_t comm_ns) {
      return ledger_row({RowKind::kRecording}, device,
                        {{Bucket::kComm, comm_ns}, {Bucket::kCompute, 1000 - comm_ns}});
    };
    return LedgerChange{ledger(before), ledger(after)};
  };
  const std::vector<MovedWait> moved =
      moved_waits({change("cuda:0", 200, 50), change("cuda:1", 60, 180)});
  ASSERT_EQ(moved.size(), 1U) << "compute is not waiting";
  EXPECT_EQ(moved[0].bucket, Bucket::kComm);
  EXPECT_EQ(moved[0].from, "cuda:0");
  EXPECT_EQ(moved[0].to, "cuda:1");
  EXPECT_EQ(moved[0].less_ns, 150);
  EXPECT_EQ(moved[0].more_ns, 120);
  EXPECT_TRUE(moved_waits({change("cuda:0", 200, 50), change("cuda:1", 60, 62)}).empty());
  EXPECT_TRUE(moved_waits({change("cuda:0", 200, 250), change("cuda:1", 60, 180)}).empty());
}

// How long a program ran that failed says nothing, and no part of it does.
TEST(Compare, AFailedRunHasNoNumber) {
  RunSummary failed = make_run(5e6, "failed");
  failed.absent = "the program exited with code 1";
  failed.kernels = {make_kernel("gemm", "gemm", 1, 10)};
  const Comparison comparison = compare_runs({make_run(1e7)}, {failed}, {});
  EXPECT_TRUE(has_failed_run(comparison));
  const MetricChange& tpot = metric_of(comparison, "aggregates.tpot.p50_ns");
  EXPECT_EQ(tpot.base, 1e7);
  EXPECT_FALSE(tpot.candidate.has_value());
  EXPECT_FALSE(tpot.ratio.has_value());
  EXPECT_TRUE(comparison.kernels.empty());
  CompareOptions options;
  options.budgets = {{"aggregates.tpot.p50_ns", {}, 6e6, {}}};
  const Comparison judged = judge_limits({failed}, options);
  EXPECT_EQ(judged.verdict, Decision::kInvalid);
  EXPECT_FALSE(judged.metrics[0].candidate.has_value());
  EXPECT_FALSE(has_failed_run(compare_runs({make_run(1e7)}, {make_run(1e7)}, {})));
}

TEST(Compare, ALimitOnTheValueNeedsNoBase) {
  std::vector<RunSummary> candidate = make_side(1e7, 5);
  for (RunSummary& run : candidate) {
    run.metrics.push_back({"capture.kernel_ns", "ns", 7, false, false, ""});
  }
  CompareOptions options;
  options.budgets = {{"capture.kernel_ns", {}, 7, {}}};
  EXPECT_EQ(compare_runs(make_side(1e7, 5), candidate, options).verdict, Decision::kPass);
  options.budgets = {{"capture.kernel_ns", {}, 6, {}}};
  EXPECT_EQ(compare_runs(make_side(1e7, 5), candidate, options).verdict, Decision::kRegress);
  options.budgets = {{"capture.kernel_ns", 0.1, {}, {}}};
  EXPECT_EQ(compare_runs(make_side(1e7, 5), candidate, options).verdict, Decision::kInconclusive);
}

TEST(Compare, BudgetsDecideToo) {
  CompareOptions options;
  options.budgets = {{"aggregates.decode_tokens_per_s", {}, {}, 200.0}};  // there are 100
  Comparison comparison = compare_runs(make_side(1e7, 6), make_side(1e7, 6), options);
  EXPECT_EQ(comparison.verdict, Decision::kRegress);
  options.budgets = {{"aggregates.tpot.p50_ns", 0.1, {}, {}}};
  EXPECT_EQ(compare_runs(make_side(1e7, 6), make_side(1.05e7, 6), options).verdict,
            Decision::kPass);
  options.budgets = {{"no.such_key", 0.1, {}, {}}};
  comparison = compare_runs(make_side(1e7, 6), make_side(1e7, 6), options);
  EXPECT_EQ(comparison.verdict, Decision::kInconclusive);
  EXPECT_THAT(comparison.sentence(), HasSubstr("no run has it"));
}

TEST(TakeApart, ASwappedKernelIsOneRowAndAllRowsSum) {
  RunSummary base = make_run(1e7);
  RunSummary candidate = make_run(1e7);
  base.kernels = {make_kernel("gemm_old", "gemm", 100, 1000), make_kernel("norm", "norm", 10, 105),
                  make_kernel("lost", "attention", 7, 70)};
  candidate.kernels = {make_kernel("gemm_new", "gemm", 100, 700),
                       make_kernel("norm", "norm", 12, 120), make_kernel("rare", "gemm", 1, 9)};
  base.kernel_ns = 1175;
  candidate.kernel_ns = 829;
  Comparison comparison;
  diff_runs(base, candidate, comparison);
  ASSERT_EQ(comparison.kernels.size(), 4U);
  const KernelChange& swap = comparison.kernels[0];
  EXPECT_EQ(swap.kind, KernelChange::Kind::kSwapped);
  EXPECT_EQ(swap.candidate.name, "gemm_new");
  EXPECT_EQ(swap.duration_ns, -300);
  EXPECT_EQ(swap.calls_ns, 0);
  std::int64_t sum = 0;
  for (const KernelChange& row : comparison.kernels) {
    EXPECT_EQ(row.calls_ns + row.duration_ns, row.difference_ns());
    sum += row.difference_ns();
  }
  EXPECT_EQ(sum, candidate.kernel_ns - base.kernel_ns);
  const KernelChange& norm = comparison.kernels[2];
  EXPECT_EQ(norm.base.name, "norm");
  EXPECT_EQ(norm.calls_ns, 21);  // two launches at 10.5 ns
  EXPECT_EQ(norm.duration_ns, -6);
}

TEST(Compare, LimitsNeedNoBaseAndOneRunIsEnough) {
  CompareOptions options;
  MetricBudget budget;
  budget.key = "aggregates.tpot.p50_ns";
  budget.at_most = 1.1e7;
  options.budgets = {budget};
  const Comparison within = judge_limits({make_run(1e7)}, options);
  EXPECT_EQ(within.verdict, Decision::kPass);
  EXPECT_EQ(within.sentence(), "every value is within its limit");
  ASSERT_EQ(within.metrics.size(), 1U) << "a metric without a limit is not judged";
  EXPECT_EQ(within.metrics[0].at_most, 1.1e7);
  const Comparison outside = judge_limits({make_run(1.2e7)}, options);
  EXPECT_EQ(outside.verdict, Decision::kRegress);
  EXPECT_THAT(outside.sentence(), HasSubstr("outside its limit: time per token (p50)"));
  const Comparison half = judge_limits({make_run(1e7), make_run(1.2e7)}, options);
  EXPECT_EQ(half.verdict, Decision::kInconclusive);
  EXPECT_TRUE(half.metrics[0].is_limit_above);
  EXPECT_EQ(half.metrics[0].broken_limit, 1.1e7);
  const Comparison most = judge_limits({make_run(1e7), make_run(1.2e7), make_run(1.3e7)}, options);
  EXPECT_EQ(most.verdict, Decision::kRegress);
  EXPECT_THAT(most.sentence(), HasSubstr("2 of 3 runs break the budget's limit"));
  RunSummary empty = make_run(1e7);
  empty.absent = "the program failed";
  EXPECT_EQ(judge_limits({empty}, options).verdict, Decision::kInvalid);
  options.budgets[0].key = "aggregates.nosuch";
  EXPECT_EQ(judge_limits({make_run(1e7)}, options).verdict, Decision::kInconclusive);
}

// A limit that few runs break does not make a proven slowdown less certain.
TEST(Compare, ALimitDoesNotHideARegression) {
  CompareOptions options;
  MetricBudget budget;
  budget.key = "aggregates.tpot.p50_ns";
  budget.change_fraction = 0.05;
  budget.at_most = 1.2010e7;
  options.budgets = {budget};
  std::vector<RunSummary> slower;
  for (int i = 0; i < 8; ++i) {
    slower.push_back(make_run(i == 0 ? 1.2011e7 : 1.2e7 + i));
  }
  const Comparison comparison = compare_runs(make_side(1e7, 8), slower, options);
  EXPECT_EQ(comparison.verdict, Decision::kRegress) << comparison.sentence();
}

TEST(SelfTest, SaysHowFarTheRunsAreApart) {
  const SelfTest test = self_test({make_run(10), make_run(14), make_run(11)}, {}, 1);
  ASSERT_EQ(test.spreads.size(), 1U);
  EXPECT_EQ(test.spreads[0].key, "aggregates.tpot.p50_ns");
  EXPECT_EQ(test.spreads[0].low, 10);
  EXPECT_EQ(test.spreads[0].median, 11);
  EXPECT_EQ(test.spreads[0].high, 14);
}

TEST(SelfTest, CountsDealsAndSaysWhenNothingCouldAlarm) {
  const SelfTest few = self_test(make_side(1e7, 6), {}, 20);
  EXPECT_FALSE(few.can_alarm);
  EXPECT_EQ(few.least_runs, 10);
  EXPECT_EQ(few.deals, 20);
  const SelfTest many = self_test(make_side(1e7, 12), {}, 50);
  EXPECT_TRUE(many.can_alarm);
  EXPECT_EQ(many.alarms, 0);
  EXPECT_EQ(many.passes, 50);
}

TEST(Statistics, BlocksCoverWhatCorrelatedStepsDo) {
  // Steps that resemble the ones before them: a bootstrap of single steps would be too sure.
  SteadyRandom random(3);
  int covered = 0;
  constexpr int kSeries = 200;
  for (int i = 0; i < kSeries; ++i) {
    const auto series = [&] {
      std::vector<double> steps;
      double state = 0;
      for (int k = 0; k < 1000; ++k) {
        state = 0.6 * state + random.normal();
        steps.push_back(100 + state);
      }
      return steps;
    };
    const std::vector<double> a = series();
    const std::vector<double> b = series();
    const auto interval = block_bootstrap_ratio(a, b, 0.95, 400);
    ASSERT_TRUE(interval.has_value());
    covered += interval->low <= 1 && interval->high >= 1 ? 1 : 0;
  }
  EXPECT_GE(covered, kSeries * 88 / 100);
  EXPECT_LT(covered, kSeries);
}

TEST(Statistics, RandomNumbersAreThoseOfTheAlgorithm) {
  SteadyRandom random(0);
  EXPECT_EQ(random.next(), 0xE220A8397B1DCDAFULL);  // SplitMix64 of seed 0, as published
}

TEST(Compare, AReasonThatSeveralShareIsSaidOnce) {
  RunSummary one = make_run(1e7);
  one.metrics.push_back({"aggregates.ttft.p50_ns", "ns", 5e7, false, true, ""});
  RunSummary other = one;
  other.metrics[0].value = 1.1e7;
  EXPECT_THAT(
      compare_runs({one}, {other}, {}).sentence(),
      testing::StartsWith(
          "not decided: time per token (p50), time to first token (p50): one run per side"));
  std::vector<RunSummary> failed = make_side(1e7, 5);
  for (RunSummary& run : failed) {
    run.absent = "the program exited with code 1";
  }
  failed[4].absent = "it timed out";
  const Comparison comparison = compare_runs(make_side(1e7, 5), failed, {});
  EXPECT_EQ(
      comparison.sentence(),
      "a run failed or is empty: 4 runs (run and 3 more): the program exited with code 1; run: it timed "
      "out");
  EXPECT_EQ(comparison.facts.size(), 2U);
}

TEST(Compare, AValueBeyondItsLimitIsNotCalledSlower) {
  CompareOptions options;
  options.budgets = {{"aggregates.tpot.p50_ns", std::nullopt, 5e6, std::nullopt}};
  const Comparison comparison = compare_runs(make_side(1e7, 6), make_side(1e7, 6), options);
  EXPECT_EQ(comparison.verdict, Decision::kRegress);
  EXPECT_THAT(comparison.sentence(),
              testing::StartsWith("outside its limit: time per token (p50)"));
  EXPECT_THAT(comparison.sentence(), testing::Not(HasSubstr("slower")));
}

TEST(Compare, OtherMetricsAreNamedOnlyWhereThereAreSome) {
  CompareOptions options;
  options.budgets = {{"aggregates.tpot.p50_ns", 0.05, std::nullopt, std::nullopt}};
  const auto sentence = [&](const std::vector<RunSummary>& base,
                            const std::vector<RunSummary>& now) {
    return compare_runs(base, now, options).sentence();
  };
  std::vector<RunSummary> base = make_side(1e7, 6);
  std::vector<RunSummary> candidate = make_side(1.02e7, 6);
  EXPECT_EQ(sentence(base, candidate), "every budget is met");
  for (std::size_t i = 0; i < 6; ++i) {
    const double ttft_ns = 5e7 + static_cast<double>(i);
    base[i].metrics.push_back({"aggregates.ttft.p50_ns", "ns", ttft_ns, false, true, ""});
    candidate[i].metrics.push_back({"aggregates.ttft.p50_ns", "ns", ttft_ns, false, true, ""});
  }
  EXPECT_THAT(sentence(base, candidate), HasSubstr("no other gated metric got slower"));
}

TEST(Compare, AsManyStepsAreTheSameWorkInRecordingsOfEqualLength) {
  const auto make = [](std::int64_t instances, std::int64_t calls) {
    RunSummary run = make_run(1e7);
    run.recording_ns = 2'000'000;
    run.stages[0].num_instances = instances;
    run.kernels = {make_kernel("gemm", "gemm", calls, 1000)};
    return run;
  };
  EXPECT_TRUE(pace_change(make(100, 100), make(80, 80)).has_value());
  EXPECT_FALSE(pace_change(make(100, 100), make(100, 80)).has_value());
}

TEST(Compare, StepsOfOneRunArePairedInTheirOrder) {
  RunSummary base = make_run(1e7);
  base.metrics[0].steps = "decode";
  base.steps = {step_row("decode", {10, 10, 10, 10})};
  RunSummary candidate = base;
  candidate.metrics[0].value = 9e6;
  candidate.steps = {step_row("decode", {9, 9, 9, 11})};
  const Comparison comparison = compare_runs({base}, {candidate}, {});
  ASSERT_TRUE(comparison.steps.has_value());
  EXPECT_EQ(comparison.steps->pairs, 4);
  EXPECT_EQ(comparison.steps->shorter, 3);
  EXPECT_EQ(comparison.steps->longer, 1);
  candidate.steps[0].durations_ns.push_back(9);
  const Comparison unequal = compare_runs({base}, {candidate}, {});
  ASSERT_TRUE(unequal.steps.has_value());
  EXPECT_EQ(unequal.steps->pairs, 0) << "not as many steps: there are no pairs, but means";
  EXPECT_DOUBLE_EQ(unequal.steps->candidate_mean_ns, 9.4);
  EXPECT_FALSE(compare_runs({base, base}, {candidate, candidate}, {}).steps.has_value());
}

TEST(Compare, DatesOfASideAreKnownOnlyIfAllAre) {
  std::vector<RunSummary> base = make_side(1e7, 3);
  base[0].recorded = "2026-11-02 10:00:00 UTC";
  base[1].recorded = "2026-11-01 10:00:00 UTC";
  base[2].recorded = "2026-11-03 10:00:00 UTC";
  const std::vector<RunSummary> candidate = make_side(1.1e7, 3);
  const Comparison comparison = compare_runs(base, candidate, {});
  EXPECT_EQ(comparison.base_rate.first_recorded, "2026-11-01 10:00:00 UTC");
  EXPECT_EQ(comparison.base_rate.last_recorded, "2026-11-03 10:00:00 UTC");
  EXPECT_EQ(comparison.candidate_rate.first_recorded, "");
  base[1].recorded = "";
  EXPECT_EQ(compare_runs(base, candidate, {}).base_rate.last_recorded, "");
}

}  // namespace
}  // namespace gpuwhy
