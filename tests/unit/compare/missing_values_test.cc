// SPDX-License-Identifier: Apache-2.0
//
// Tests of verdicts where some runs lack a value, a side has no kernels, or runs are on both sides.

#include "compare/compare.h"
#include "compare/compared_rows.h"
#include "testing.h"

namespace gpuwhy {
namespace {

constexpr const char* kKey = "aggregates.tpot.p50_ns";

RunSummary run_of(double tpot_ns) {
  RunSummary run;
  run.label = "run";
  run.is_marked = true;
  run.launches = 10;
  run.stages = {stage_row("decode", 100, 100)};
  run.metrics = {{kKey, "ns", tpot_ns, false, true, ""}};
  return run;
}

RunSummary run_without_value() {
  RunSummary run = run_of(0);
  run.metrics.clear();
  return run;
}

CompareOptions at_most(double limit) {
  CompareOptions options;
  options.budgets = {{kKey, {}, limit, {}}};
  return options;
}

TEST(MissingValues, ALimitThatIsBrokenWhereItWasMeasuredIsBroken) {
  for (const auto& runs : {std::vector{run_of(1.2e7), run_without_value()},
                           std::vector{run_without_value(), run_of(1.2e7)}}) {
    const Comparison outside = judge_limits(runs, at_most(1.1e7));
    EXPECT_EQ(outside.verdict, Decision::kRegress) << outside.sentence();
    EXPECT_EQ(outside.outcome, "outside its limit");
    EXPECT_THAT(
        outside.reasons,
        HasSubstr("every run that has it breaks the budget's limit; 1 of 2 runs has no value"));
    EXPECT_EQ(outside.metrics[0].candidate, 1.2e7);
    EXPECT_EQ(outside.metrics[0].missing_runs, 1);
    const Comparison with_base = compare_runs({run_of(1e7), run_of(1.01e7)}, runs, at_most(1.1e7));
    EXPECT_EQ(with_base.verdict, Decision::kRegress) << with_base.sentence();
  }
}

TEST(MissingValues, ALimitThatIsKeptWhereItWasMeasuredIsNotDecided) {
  const Comparison open = judge_limits({run_without_value(), run_of(1e7)}, at_most(1.1e7));
  EXPECT_EQ(open.verdict, Decision::kInconclusive);
  EXPECT_EQ(open.outcome, "not decided");
  EXPECT_THAT(open.reasons, HasSubstr("1 of 2 runs has no value"));
}

TEST(Limits, AreAddedToTheTestAgainstTheBaselineAndDoNotReplaceIt) {
  // One run per side, 11 % slower: within its limit, and not decided.
  const Comparison open = compare_runs({run_of(1e7)}, {run_of(1.11e7)}, at_most(1e9));
  EXPECT_EQ(open.verdict, Decision::kInconclusive) << open.sentence();
  EXPECT_THAT(open.reasons, HasSubstr("one run per side"));
  // Beyond its limit is broken, whatever the test says, and the numbers are in the sentence.
  const Comparison outside = compare_runs({run_of(1e7)}, {run_of(1.11e7)}, at_most(1.1e7));
  EXPECT_EQ(outside.verdict, Decision::kRegress);
  EXPECT_THAT(outside.reasons, HasSubstr("11.1 ms (at most 11.0 ms)"));
  // Without a baseline the limit is all there is.
  EXPECT_EQ(judge_limits({run_of(1.11e7)}, at_most(1e9)).verdict, Decision::kPass);
}

TEST(MissingValues, ASideWithoutKernelsIsNotComparableAndDidNotFail) {
  RunSummary on_cpu = run_of(1e7);
  on_cpu.launches = 0;
  on_cpu.is_without_kernels = true;
  CompareOptions options;
  options.allowed = comparable_facts();
  const Comparison comparison = compare_runs({run_of(1e7)}, {on_cpu}, options);
  EXPECT_EQ(comparison.verdict, Decision::kInvalid);
  EXPECT_FALSE(has_failed_run(comparison));
  EXPECT_EQ(comparison.sentence(),
            "not comparable: gpu_work: the candidate recorded no kernel, the base 10 launches");
  // One run of a side whose recording was lost is a failed run.
  EXPECT_TRUE(has_failed_run(compare_runs({run_of(1e7)}, {run_of(1e7), on_cpu}, options)));
}

TEST(MissingValues, WhatSeveralRunsOrStagesHaveIsSaidOnce) {
  std::vector<RunSummary> runs;
  for (int i = 0; i < 4; ++i) {
    runs.push_back(run_of(1e7 + i));
    runs.back().label = "run-" + std::to_string(i);
    runs.back().identity = runs.back().label;
  }
  const Comparison same = compare_runs(runs, runs, {});
  ASSERT_EQ(same.facts.size(), 1U);
  EXPECT_EQ(same.facts[0].base, "4 runs (run-0 and 3 more)");
  RunSummary longer = run_of(1e7);
  RunSummary shorter = run_of(1e7);
  longer.stages = {stage_row("prefill", 100), stage_row("decode", 100)};
  shorter.stages = {stage_row("prefill", 50), stage_row("decode", 50)};
  EXPECT_EQ(compare_runs({longer}, {shorter}, {}).reasons,
            "instances: a stage ran more or less often (2 stages)");
}

}  // namespace
}  // namespace gpuwhy
