// SPDX-License-Identifier: Apache-2.0
#include <set>

#include <nlohmann/json.hpp>

#include "compare/compared_rows.h"
#include "report/comparison/comparison_parts.h"
#include "report/comparison/run_summary.h"
#include "report/sections/speed.h"
#include "testing.h"

namespace gpuwhy {
namespace {

constexpr const char* kPeriod = "steps[stage=step].period_median_ns";
constexpr std::int64_t kMs = 1'000'000;

// Six steps, with waiting for a data loader and for launches.
RunSummary make_run(double step_ms, std::int64_t compute_ms, std::int64_t loader_ms,
                    std::int64_t launch_ms) {
  RunSummary run;
  run.label = "run";
  run.is_marked = true;
  run.launches = 100;
  run.num_gpus = 1;
  run.kernel_ns = compute_ms * kMs;
  run.stages = {stage_row("step", 6)};
  run.metrics = {{kPeriod, "ns", step_ms * kMs, false, true, "", row_name("step")}};
  run.kernels = {kernel_row("gemm", "step", "gemm", 100, compute_ms * kMs)};
  run.ledgers = {ledger_row(row_name("step"), "cuda:0",
                            {{Bucket::kCompute, compute_ms * kMs},
                             {Bucket::kLaunchLate, (loader_ms + launch_ms) * kMs}})};
  run.idle = {
      idle_row(row_name("step"), "cuda:0", IdleKind::kHostWork, "DataLoader", loader_ms * kMs),
      idle_row(row_name("step"), "cuda:0", IdleKind::kLaunching, "aten::add", launch_ms * kMs)};
  return run;
}

Comparison compared(const RunSummary& base, const RunSummary& candidate, double price = 0) {
  CompareOptions options;
  options.gpu_hour_price = price > 0 ? std::optional(price) : std::nullopt;
  return compare_runs({base}, {candidate}, options);
}

TEST(CauseSentence, NamesTheLargestPartsAndWhatTheCpuDid) {
  EXPECT_EQ(
      cause_sentence(compared(make_run(150, 590, 220, 90), make_run(129, 595, 20, 150))),
      "Where it comes from: CPU did other work (mostly in 'DataLoader') -200 ms, waiting for CPU "
      "launch (mostly in 'aten::add') +60.0 ms; in all, -135 ms of 900 ms (all of 'step' "
      "together, cuda:0).");
  EXPECT_THAT(cause_sentence(compared(make_run(100, 500, 50, 50), make_run(130, 680, 50, 50))),
              HasSubstr("Where it comes from: compute (gemm kernels +180 ms) +180 ms; in all"));
}

TEST(CauseSentence, IsNotSaidWhereThePartsDoNotTell) {
  // No change, one of other work, or one that is not that of the deciding time.
  EXPECT_EQ(cause_sentence(compared(make_run(150, 590, 220, 90), make_run(150.1, 590, 221, 90))),
            "");
  EXPECT_EQ(cause_sentence(compared(make_run(150, 590, 220, 90), make_run(170, 590, 20, 90))), "");
  RunSummary other = make_run(129, 595, 20, 150);
  other.stages[0].num_instances = 12;
  EXPECT_EQ(cause_sentence(compared(make_run(150, 590, 220, 90), other)), "");
  // Many small parts: none of them is the cause.
  RunSummary base = make_run(100, 500, 0, 0);
  RunSummary candidate = make_run(120, 500, 0, 0);
  for (const Bucket bucket : {Bucket::kComm, Bucket::kCopy, Bucket::kGraph, Bucket::kQueued,
                              Bucket::kSync, Bucket::kTail}) {
    base.ledgers[0].buckets_ns[static_cast<std::size_t>(bucket)] = 10 * kMs;
    candidate.ledgers[0].buckets_ns[static_cast<std::size_t>(bucket)] = 30 * kMs;
    base.ledgers[0].window_ns += 10 * kMs;
    candidate.ledgers[0].window_ns += 30 * kMs;
  }
  EXPECT_EQ(cause_sentence(compared(base, candidate)), "");
}

TEST(CauseSentence, OfOperatorsWithoutAGpu) {
  RunSummary base;
  base.label = "run";
  base.metrics = {{"aggregates.program_ns", "ns", 1e9, false, true, ""}};
  base.operators = {operator_row("MUL_MAT", row_name("decode"), 700 * kMs, 1),
                    operator_row("ADD", row_name("decode"), 100 * kMs, 1)};
  base.operators_whole_ns = 800 * kMs;
  RunSummary candidate = base;
  candidate.metrics[0].value = 8e8;
  candidate.operators[0].total_ns = 500 * kMs;
  candidate.operators_whole_ns = 600 * kMs;
  EXPECT_EQ(cause_sentence(compared(base, candidate)),
            "Where it comes from: operators MUL_MAT -200 ms; in all, -200 ms of 800 ms.");
}

TEST(WorthSentence, IsOfTokensWhereTheyAreCountedElseOfSteps) {
  RunSummary base = make_run(3600, 590, 220, 90);
  RunSummary candidate = make_run(1800, 595, 20, 150);
  EXPECT_EQ(worth_sentence(compared(base, candidate)), "");
  EXPECT_EQ(
      worth_sentence(compared(base, candidate, 2)),
      "At 2.00 per GPU-hour, 1,000 steps cost 2.00 before and 1.00 now: 1.00 less (-50.0 %), on 1 GPU. "
      "What the base does in a day cost 48.00 and costs 24.00 now: 24.00 less per day.");
  // A sum is paid for: one long step among short ones counts.
  base.metrics[0].steps = candidate.metrics[0].steps = "step";
  base.steps = {step_row("step", {36e11, 36e11, 36e11})};
  candidate.steps = {step_row("step", {18e11, 18e11, 36e11})};
  CompareOptions in_euros;
  in_euros.gpu_hour_price = 2;
  in_euros.price_unit = "EUR";
  EXPECT_EQ(
      worth_sentence(compare_runs({base}, {candidate}, in_euros)),
      "At 2.00 EUR per GPU-hour, 1,000 steps (of the mean length) cost 2000.00 EUR before and "
      "1333.33 EUR now: 666.67 EUR less (-33.3 %), on 1 GPU. What the base does in a day cost 48.00 "
      "EUR and costs 32.00 EUR now: 16.00 EUR less per day.");
  base.tokens_per_s = 1000;
  candidate.tokens_per_s = 800;
  base.num_gpus = candidate.num_gpus = 2;
  EXPECT_EQ(
      worth_sentence(compared(base, candidate, 3.6)),
      "At 3.60 per GPU-hour, a million tokens cost 2.00 before and 2.50 now: 0.5 more (+25.0 %), on "
      "2 GPUs. What the base does in a day cost 172.80 and costs 216.00 now: 43.20 more per day.");
  base.num_gpus = 0;
  EXPECT_THAT(worth_sentence(compared(base, candidate, 3.6)),
              HasSubstr("not known: no GPU worked"));
}

TEST(PromiseSentence, SaysHowMuchOfASavingCameTrueOnlyWhereThatIsSure) {
  RunSummary base = make_run(150, 590, 220, 90);
  const RowName step = row_name("step");
  base.promises = {promise(FindingId::kGemmOffTensorCores, step, Bucket::kCompute, 300 * kMs, 6),
                   promise(FindingId::kHostWork, step, Bucket::kLaunchLate, 180 * kMs, 6),
                   promise(FindingId::kLaunchBound, step, Bucket::kLaunchLate, 90 * kMs, 6)};
  EXPECT_EQ(promise_sentence(compared(base, make_run(129, 595, 20, 150))),
            "The base promised up to 30.0 ms per step for \"The GPU waits while the processor does "
            "other work\". That time fell by 33.3 ms per step, and a step is 21.0 ms shorter: 70 % "
            "of the promise. Other waiting grew instead, most of all \"waiting for CPU launch\" by "
            "10.0 ms per step: look there next.");
  RunSummary timed = base;
  RunSummary shorter = make_run(129, 595, 20, 150);
  timed.metrics[0].steps = shorter.metrics[0].steps = "step";
  timed.steps = {step_row("step", {150.0 * kMs, 150.0 * kMs, 150.0 * kMs})};
  shorter.steps = {step_row("step", {129.0 * kMs, 129.0 * kMs, 147.0 * kMs})};
  EXPECT_THAT(promise_sentence(compared(timed, shorter)),
              HasSubstr("a step is 15.0 ms shorter on average: 50 % of the promise."))
      << "a saving is of all steps, also of the long ones";
  EXPECT_THAT(promise_sentence(compared(base, make_run(100, 400, 20, 90))),
              HasSubstr("50.0 ms shorter: more than was promised, so something else changed too."));
  EXPECT_EQ(promise_sentence(compared(base, make_run(129, 460, 215, 95))), "")
      << "the time that the finding is about is still there";
  EXPECT_EQ(promise_sentence(compared(base, make_run(150, 720, 20, 90))), "") << "not faster";
  RunSummary other = make_run(129, 595, 20, 150);
  other.stages[0].num_instances = 12;
  EXPECT_EQ(promise_sentence(compared(base, other)), "") << "other work";
  base.promises[1].stage = row_name("decode");
  EXPECT_EQ(promise_sentence(compared(base, make_run(129, 595, 20, 90))), "") << "another stage";
}

TEST(Buckets, ARecordingThatIsOneStageIsShownOnce) {
  RunSummary base = make_run(150, 590, 220, 90);
  RunSummary candidate = make_run(129, 595, 20, 150);
  for (RunSummary* run : {&base, &candidate}) {
    run->ledgers.push_back(run->ledgers[0]);
    run->ledgers[1].stage = {RowKind::kRecording};
  }
  const auto stages_of = [](const Section& section) {
    std::set<std::string> stages;
    for (const ReportRow& row : section.tables.at(0).rows) {
      stages.insert(*row.cells.at(0).text());
    }
    return stages;
  };
  const Section once = buckets_section(compared(base, candidate));
  EXPECT_THAT(stages_of(once), testing::ElementsAre("step"));
  EXPECT_THAT(once.notes,
              testing::Contains("The whole recording on cuda:0 has the times of 'step'."));
  candidate.ledgers[1].window_ns += 10 * kMs;
  EXPECT_THAT(stages_of(buckets_section(compared(base, candidate))),
              testing::ElementsAre("step", "whole recording"));
}

TEST(MovedWait, SaysTheSumAndWhoWaitsForWhom) {
  EXPECT_EQ(moved_wait_text(
                {{RowKind::kRecording}, Bucket::kComm, "cuda:0", "cuda:1", 7 * kMs, 15 * kMs}),
            "Waiting moved from cuda:0 to cuda:1 (communication only): cuda:0 waits 7.00 ms less, "
            "cuda:1 15.0 ms more, 8.00 ms more in all. There a GPU waits for a slower one, which "
            "itself waits less.");
}

MetricChange small_row(double ratio, double low, double high) {
  MetricChange row;
  row.key = "aggregates.tpot.p50_ns";
  row.unit = "ns";
  row.is_gated = true;
  row.base = 100;
  row.candidate = 100 * ratio;
  row.ratio = ratio;
  row.ratio_low = low;
  row.ratio_high = high;
  row.limit_fraction = 0.01;
  row.change = Change::kSame;
  return row;
}

// A word beside an interval must not contradict it.
TEST(MetricJudgement, AgreesWithTheNumbersBesideIt) {
  EXPECT_EQ(metric_judgement(small_row(1.001, 0.998, 1.004)), "no significant change");
  EXPECT_EQ(metric_judgement(small_row(1.005, 1.002, 1.008)), "longer, by less than 1 %");
  EXPECT_EQ(metric_judgement(small_row(0.98, 0.96, 0.995)), "shorter, not surely by 1 %");
  MetricChange rate = small_row(0.995, 0.992, 0.998);
  rate.is_larger_better = true;
  EXPECT_EQ(metric_judgement(rate), "lower, by less than 1 %");
  MetricChange budget = small_row(1.021, 1.015, 1.03);
  budget.has_change_budget = true;
  budget.limit_fraction = 0.05;
  EXPECT_EQ(metric_judgement(budget), "within budget (+2.10 %, limit +5 %)");
  EXPECT_EQ(gate_limit_text(budget), "+5 %");
  budget.at_most = 12e6;
  EXPECT_EQ(gate_limit_text(budget), "+5 %, at most 12.0 ms");
  MetricChange outside = small_row(1, 0.99, 1.01);
  outside.change = Change::kWorse;
  outside.broken_limit = 50;
  outside.is_limit_above = true;
  outside.reason = "every run breaks the budget's limit";
  EXPECT_EQ(metric_judgement(outside),
            "OUTSIDE (at most 50 ns: every run breaks the budget's limit)");
}

// The time of a step that the summary tells is the one by which a comparison decides.
TEST(StepTime, IsTheSameInReportsAndComparisons) {
  Results metrics;
  StageRow& stage = metrics.stages.emplace_back();
  stage.stage = row_name("step");
  stage.num_instances = 6;
  stage.median_ns = 152 * kMs;
  stage.total_ns = 918 * kMs;
  StepRow& steps = metrics.steps.emplace_back();
  steps.stage = row_name("step");
  steps.gpu_window_median_ns = 116 * kMs;
  steps.period_median_ns = 150 * kMs;
  const auto key_of = [&] {
    const RunSummary run = summary_of_run("run", metrics, {});
    const auto value = std::ranges::find(run.metrics, run.stages[0].step_key, &RunMetric::key);
    EXPECT_NE(value, run.metrics.end()) << run.stages[0].step_key;
    EXPECT_DOUBLE_EQ(value->value, static_cast<double>(step_time(metrics, stage)->time_ns));
    return run.stages[0].step_key;
  };
  EXPECT_EQ(key_of(), kPeriod);
  EXPECT_THAT(speed_sentences(metrics),
              testing::ElementsAre(
                  "One step takes 150 ms (from one to the next, median of 5): 6.67 per second."));
  steps.period_median_ns.reset();
  EXPECT_EQ(key_of(), "stages[stage=step].host_median_ns");
  steps.gpu_window_median_ns = 160 * kMs;
  EXPECT_EQ(key_of(), "steps[stage=step].gpu_window_median_ns");
  stage.num_instances = 1;
  LedgerRow& ledger = metrics.ledgers.emplace_back();
  ledger.stage = row_name("step");
  ledger.device = "cuda:0";
  ledger.window_ns = 170 * kMs;
  EXPECT_EQ(key_of(), "ledgers[stage=step,device=cuda:0].window_ns");
  EXPECT_EQ(step_time(metrics, stage)->time_ns, 170 * kMs);
}

}  // namespace
}  // namespace gpuwhy
