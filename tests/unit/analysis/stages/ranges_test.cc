// SPDX-License-Identifier: Apache-2.0
#include "analysis/stages/ranges.h"

#include <algorithm>

#include "analysis/stages/attribution.h"
#include "testing.h"
#include "trace_builder.h"

namespace gpuwhy {
namespace {

std::int64_t kernel_ns_of(const std::vector<RangeTotal>& ranges, const std::string& name) {
  const auto found = std::ranges::find(ranges, name, &RangeTotal::range);
  return found == ranges.end() ? -1 : found->kernel_ns;
}

// A step whose backward pass another thread launches, as autograd does.
Trace training_step(bool has_autograd, bool has_third_thread) {
  TraceBuilder made;
  const std::uint16_t process = made.add_process();
  const std::uint32_t main = made.add_thread(process);
  const std::uint32_t engine = made.add_thread(process);
  const std::uint32_t stream = made.add_stream(process, made.add_device());
  made.range(main, 0, 1000, "step");
  made.range(main, 100, 400, "forward");
  made.range(main, 500, 900, "backward");
  made.launch(main, 200, stream, 210, 240, "gemm");
  if (has_autograd) {
    made.op(engine, 550, 700, "autograd::engine::evaluate_function: MmBackward0");
  }
  made.launch(engine, 600, stream, 610, 660, "gemm_backward");
  made.launch(engine, 800, stream, 810, 820, "other");
  if (has_third_thread) {
    const std::uint32_t third = made.add_thread(process);
    made.range(third, 0, 1000, "loader");
  }
  return made.finish();
}

std::vector<RangeTotal> ranges_of(const Trace& trace) {
  return summarise_ranges(trace, attribute(trace, Stages()));
}

TEST(Ranges, TheBackwardPassCountsForTheThreadThatWaitsForIt) {
  const std::vector<RangeTotal> ranges = ranges_of(training_step(true, false));
  EXPECT_EQ(kernel_ns_of(ranges, "backward"), 50) << "not what runs outside autograd's functions";
  EXPECT_EQ(kernel_ns_of(ranges, "step"), 80);
  EXPECT_EQ(kernel_ns_of(ranges, "forward"), 30);
}

TEST(Ranges, OwnTimeIsOutsideNestedRangesAndTheLongestInstanceHasAPlace) {
  TraceBuilder made;
  const std::uint16_t process = made.add_process();
  const std::uint32_t main = made.add_thread(process);
  const std::uint32_t other = made.add_thread(process);
  made.range(main, 0, 1000, "step");
  made.range(main, 100, 400, "forward");
  made.range(main, 150, 200, "norm");
  made.range(main, 500, 900, "forward");
  made.range(other, 0, 1000, "loader");  // of another thread: not inside
  const std::vector<RangeTotal> ranges = ranges_of(made.finish());
  const auto row = [&](const std::string& name) {
    return *std::ranges::find(ranges, name, &RangeTotal::range);
  };
  EXPECT_EQ(row("step").host_own_ns, 300) << "1000 without both forward, norm is inside one";
  EXPECT_EQ(row("forward").host_ns, 700);
  EXPECT_EQ(row("forward").host_own_ns, 650);
  EXPECT_EQ(row("forward").longest_ns, 400);
  EXPECT_EQ(row("forward").longest_start_ns, 500);
  EXPECT_EQ(row("loader").host_own_ns, 1000);
}

TEST(Ranges, TheBackwardPassIsNotGuessed) {
  EXPECT_EQ(kernel_ns_of(ranges_of(training_step(false, false)), "backward"), 0);
  EXPECT_EQ(kernel_ns_of(ranges_of(training_step(true, true)), "backward"), 0)
      << "two threads have ranges open";
  // What counts for no range is told.
  Diagnostics diagnostics;
  const Trace trace = training_step(false, false);
  summarise_ranges(trace, attribute(trace, Stages()), &diagnostics);
  ASSERT_EQ(diagnostics.size(), 1U);
  EXPECT_EQ(diagnostics[0].kind, "ranges_of_other_thread");
  EXPECT_EQ(diagnostics[0].sentence.substr(0, 17), "60 ns of kernels ");
  for (const auto& [has_autograd, has_third] : {std::pair(true, true), {false, true}}) {
    diagnostics.clear();
    const Trace other = training_step(has_autograd, has_third);
    summarise_ranges(other, attribute(other, Stages()), &diagnostics);
    EXPECT_TRUE(diagnostics.empty()) << "nobody is known to wait";
  }
}

TEST(Ranges, NumberedNamesAreOneRow) {
  std::vector<RangeTotal> ranges(3);
  ranges[0].range = "token_1";
  ranges[1].range = "token_2";
  ranges[2].range = "prefill";
  for (RangeTotal& range : ranges) {
    range.instances = 2;
    range.host_ns = 10;
    range.kernel_ns = 5;
    range.kernels = 3;
  }
  const std::vector<RangeTotal> folded = fold_numbered(ranges);
  ASSERT_EQ(folded.size(), 2U);
  EXPECT_EQ(folded[0].range, "token_N (2 names)");
  EXPECT_EQ(folded[0].instances, 4);
  EXPECT_EQ(folded[0].host_ns, 20);
  EXPECT_EQ(folded[0].kernel_ns, 10);
  EXPECT_EQ(folded[0].kernels, 6);
  EXPECT_EQ(folded[1].range, "prefill");
}

}  // namespace
}  // namespace gpuwhy
