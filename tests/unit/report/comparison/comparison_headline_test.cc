// SPDX-License-Identifier: Apache-2.0

#include "base/text.h"
#include "report/comparison/comparison_parts.h"
#include "testing.h"

namespace gpuwhy {
namespace {

MetricChange make_row(double base_ns, double candidate_ns, double ratio) {
  MetricChange row;
  row.key = "aggregates.tpot.p50_ns";
  row.unit = "ns";
  row.is_gated = true;
  row.base = base_ns;
  row.candidate = candidate_ns;
  row.ratio = ratio;
  return row;
}

std::string first_line(const MetricChange& row) {
  Comparison comparison;
  comparison.base = {"a", "b"};
  comparison.candidate = {"c", "d"};
  comparison.metrics = {row};
  return measured_change(comparison);
}

TEST(MeasuredChange, SaysWhyItsSignIsNotThatOfTheMedians) {
  EXPECT_EQ(first_line(make_row(705e6, 700e6, 1.008)),
            "Time per token (p50) +0.80 % over all pairs of runs, unlike the medians (medians 705 "
            "ms -> 700 ms).");
  EXPECT_THAT(first_line(make_row(700e6, 705e6, 1.008)), Not(HasSubstr("unlike")));
  EXPECT_THAT(first_line(make_row(700e6, 700e6, 1.008)), Not(HasSubstr("unlike")));
}

TEST(MeasuredChange, HasTheMeanOfTheStepsWhereItDiffersFromTheMedian) {
  Comparison comparison;
  comparison.base = {"a"};
  comparison.candidate = {"b"};
  comparison.verdict = Decision::kInconclusive;
  comparison.metrics = {make_row(150e6, 129e6, 0.86)};
  comparison.metrics[0].key = "steps[stage=step].period_median_ns";
  comparison.metrics[0].stage = row_name("step");
  PairedSteps steps;
  steps.stage = row_name("step");
  steps.base_mean_ns = 151e6;
  steps.candidate_mean_ns = 136e6;
  comparison.steps = steps;
  EXPECT_EQ(measured_change(comparison),
            "Step time (median) 150 ms -> 129 ms (-14.00 %), mean 151 ms -> 136 ms (-9.9 %).");
  comparison.steps->candidate_mean_ns = 130e6;
  EXPECT_EQ(measured_change(comparison), "Step time (median) 150 ms -> 129 ms (-14.00 %).");
}

TEST(MeasuredChange, KeysStayAsTheyAreInMetricsJson) {
  MetricChange row = make_row(0, 0.5, 1);
  row.base.reset();
  row.ratio.reset();
  row.key = "devices[device=cuda:0].busy_fraction";
  row.unit = "fraction";
  row.at_least = 0.4;
  Comparison comparison;
  comparison.candidate = {"a"};
  comparison.metrics = {row};
  EXPECT_EQ(measured_change(comparison),
            "devices[device=cuda:0].busy_fraction (of the whole recording) 50.0 % (at least 40.0 "
            "%).");
  EXPECT_EQ(with_capital("capture.kernel_ns 3 ms"), "capture.kernel_ns 3 ms");
  EXPECT_EQ(with_capital("decode. And more"), "Decode. And more");
  EXPECT_EQ(with_capital("time per token"), "Time per token");
}

}  // namespace
}  // namespace gpuwhy
