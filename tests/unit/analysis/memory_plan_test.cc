// SPDX-License-Identifier: Apache-2.0
#include "analysis/timeline/reading_need.h"
#include "base/units.h"
#include "testing.h"

namespace gpuwhy {
namespace {

TraceOutline kernels(std::uint64_t count) {
  TraceOutline outline;
  outline.file_bytes = 100 * count;
  outline.num_kernels = count;
  return outline;
}

// 76 bytes per kernel were measured (2 and 6 million kernels and nothing else, two threads), and 88
// can be needed where the model's structure is recovered.
TEST(ReadingNeed, KernelsCostWhatWasMeasuredAndAnEighth) {
  const double more = static_cast<double>(reading_need(kernels(20'000'000), {}).peak_bytes -
                                          reading_need(kernels(10'000'000), {}).peak_bytes);
  EXPECT_GE(more / 1e7, 88 * 1.125);
  EXPECT_LT(more / 1e7, 2 * 76);
}

TEST(ReadingNeed, AnEmptyRecordingNeedsTheProgram) {
  const ReadingNeed plan = reading_need({}, {});
  EXPECT_GE(plan.peak_bytes, 15 * kMiB);
  EXPECT_LT(plan.peak_bytes, 40 * kMiB);
  EXPECT_EQ(plan.report_bytes + plan.trace_bytes, 0U);
}

TEST(ReadingNeed, TheWindowOnTheFileDoesNotGrowWithIt) {
  TraceOutline large = kernels(1'000'000);
  large.file_bytes = 50'000'000'000;
  EXPECT_EQ(reading_need(large, {}).peak_bytes, reading_need(kernels(1'000'000), {}).peak_bytes);
}

TEST(ReadingNeed, FiftyGigabytesDoNotOverflow) {
  const ReadingNeed plan = reading_need(kernels(1'000'000'000), {true, true, 200'000'000});
  EXPECT_GT(plan.peak_bytes, 90 * kGiB);
  EXPECT_LT(plan.peak_bytes, 180 * kGiB);
  EXPECT_EQ(plan.trace_bytes, 200'000'000U);  // its budget
  EXPECT_GT(plan.duration_ns, 300 * kNsPerS);
}

TEST(ReadingNeed, ACoarsePictureIsAllThatCanBeSpared) {
  TraceOutline outline = kernels(1'000'000);
  outline.num_devices = 8;
  const ReadingNeed kept = reading_need(outline, {true, true, 0});
  EXPECT_LT(kept.coarse_peak_bytes, kept.peak_bytes);
  EXPECT_GT(kept.coarse_peak_bytes, reading_need(outline, {}).peak_bytes);
  const ReadingNeed shown = reading_need(outline, {});
  EXPECT_EQ(shown.coarse_peak_bytes, shown.peak_bytes) << "there is no picture to spare";
}

TEST(ReadingNeed, FilesAreReadAtOnceAsFarAsTheyFit) {
  const ReadingNeed plan = reading_need(kernels(1'000'000), {});
  ASSERT_EQ(plan.window_bytes, 16 * kMiB);
  EXPECT_EQ(files_at_once(plan, {8, 4}), 4U) << "a thread each";
  EXPECT_EQ(files_at_once(plan, {3, 4}), 3U);
  EXPECT_EQ(files_at_once(plan, {8, 0}), 1U);
  const auto within = [&](std::uint64_t limit_bytes) {
    return files_at_once(plan, {8, 4, limit_bytes});
  };
  EXPECT_EQ(within(plan.load_bytes - 1), 1U);
  EXPECT_EQ(within(plan.load_bytes + 16 * kMiB - 1), 1U);
  EXPECT_EQ(within(plan.load_bytes + 16 * kMiB), 2U);
  EXPECT_EQ(within(plan.load_bytes + 1600 * kMiB), 4U);

  const ReadingNeed of_two = with_files_at_once(plan, 2);
  EXPECT_EQ(of_two.load_bytes, plan.load_bytes + 16 * kMiB);
  EXPECT_EQ(of_two.peak_bytes, plan.peak_bytes) << "the analysis needs more";
  EXPECT_EQ(with_files_at_once(plan, 100).peak_bytes, plan.load_bytes + 99 * 16 * kMiB);
}

TEST(ReadingNeed, WhatFitsFitsAndALittleMoreDoesNot) {
  TraceOutline outline;
  const std::uint64_t events = events_that_fit(16 * kGiB);
  outline.num_kernels = events / 2;
  outline.num_calls = events / 2;
  EXPECT_LE(reading_need(outline, {}).peak_bytes, 16 * kGiB + 16 * kMiB);
  outline.num_kernels += events / 50;
  EXPECT_GT(reading_need(outline, {}).peak_bytes, 16 * kGiB);
  EXPECT_EQ(events_that_fit(kMiB), 0U);
}

}  // namespace
}  // namespace gpuwhy
