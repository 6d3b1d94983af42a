// SPDX-License-Identifier: Apache-2.0
#include "model/roofline.h"

#include "testing.h"

namespace gpuwhy {
namespace {

GpuRoofs roofs() {
  return {"test", {{"fp32", 10e12}, {"bf16", 100e12}, {"fp16", 100e12}}, 1e12, 2e9, "table"};
}

RooflineInput busy(double dram, double compute) {
  RooflineInput input;
  input.duration_ns = 100'000;
  input.dram_fraction = dram;
  input.sm_fraction = compute;
  return input;
}

TEST(Roofline, TheCeilingReachedBounds) {
  EXPECT_EQ(roofline(busy(0.8, 0.3), roofs()).bound, BoundBy::kMemory);
  EXPECT_EQ(roofline(busy(0.3, 0.8), roofs()).bound, BoundBy::kCompute);
  EXPECT_EQ(roofline(busy(0.7, 0.8), roofs()).bound, BoundBy::kCompute);
}

TEST(Roofline, AnyLevelOfMemoryCounts) {
  RooflineInput input = busy(0.2, 0.3);
  input.l2_fraction = 0.9;
  input.l1_fraction = 0.5;
  const Roofline result = roofline(input, roofs());
  EXPECT_EQ(result.bound, BoundBy::kMemory);
  EXPECT_EQ(result.memory_level, "l2");
  EXPECT_DOUBLE_EQ(*result.sol_fraction(), 0.9);
}

TEST(Roofline, FarFromBothCeilingsIsLatency) {
  RooflineInput input = busy(0.59, 0.1);
  input.no_eligible_fraction = 0.51;
  EXPECT_EQ(roofline(input, roofs()).bound, BoundBy::kLatency);
  input.dram_fraction = 0.6;
  EXPECT_EQ(roofline(input, roofs()).bound, BoundBy::kMemory);
  input.dram_fraction = 0.59;
  input.no_eligible_fraction = 0.5;
  EXPECT_EQ(roofline(input, roofs()).bound, BoundBy::kLatency) << "whatever it waits for";
  input.theoretical_occupancy_fraction = 0.49;
  EXPECT_THAT(roofline(input, roofs()).reason, ::testing::HasSubstr("its launch allows"));
}

TEST(Roofline, LatencyNamesWhatWarpsWaitedFor) {
  RooflineInput input = busy(0.2, 0.1);
  input.stalls = {{"long_scoreboard", 0.62}, {"unheard_of", 0.14}, {"wait", 0.12}};
  EXPECT_THAT(roofline(input, roofs()).reason,
              ::testing::EndsWith("; warps waited for global or local memory (long_scoreboard) "
                                  "62.0 %, for unheard_of 14.0 %"));
  input.stalls = {{"wait", 0.09}};
  EXPECT_THAT(roofline(input, roofs()).reason, ::testing::Not(::testing::HasSubstr("waited")));
  input = busy(0.9, 0.1);
  input.stalls = {{"long_scoreboard", 0.9}};
  EXPECT_THAT(roofline(input, roofs()).reason, ::testing::Not(::testing::HasSubstr("waited")))
      << "memory is its limit";
}

TEST(Roofline, ShortAndSmallIsLaunch) {
  RooflineInput input = busy(0.9, 0.1);
  input.duration_ns = 4999;
  input.waves = 0.99;
  EXPECT_EQ(roofline(input, roofs()).bound, BoundBy::kLaunch);
  input.waves = 1;
  EXPECT_EQ(roofline(input, roofs()).bound, BoundBy::kMemory);
  input.waves = 0.5;
  input.workload_duration_ns = 6000;  // the workload's duration decides where it is known
  EXPECT_EQ(roofline(input, roofs()).bound, BoundBy::kMemory);
}

TEST(Roofline, FlopsAgainstTheRoofMayExceedThePipesShare) {
  RooflineInput input = busy(0.1, 0.32);
  input.flops = 6.4e9;  // in 100 us: 64 TFLOP/s
  input.dtype = "bf16";
  input.dram_bytes = 1e8;
  const Roofline result = roofline(input, roofs());
  EXPECT_DOUBLE_EQ(*result.intensity_flops_per_byte, 64);
  EXPECT_DOUBLE_EQ(*result.flops_per_s, 64e12);
  EXPECT_DOUBLE_EQ(*result.compute_fraction, 0.64);
  EXPECT_DOUBLE_EQ(*result.dram_bytes_per_s, 1e12);
  EXPECT_EQ(result.bound, BoundBy::kCompute);
}

TEST(Roofline, MemoryShareFromBytesWhereTheProfilerGaveNone) {
  RooflineInput input;
  input.duration_ns = 1000;
  input.dram_bytes = 0.9e6;
  const Roofline result = roofline(input, roofs());
  EXPECT_DOUBLE_EQ(*result.memory_fraction, 0.9);
  EXPECT_EQ(result.bound, BoundBy::kMemory);
}

TEST(Roofline, NoCountersNoClass) {
  const Roofline result = roofline(RooflineInput(), roofs());
  EXPECT_EQ(result.bound, BoundBy::kUnknown);
  EXPECT_FALSE(result.sol_fraction());
  EXPECT_NE(result.reason.find("n/a"), std::string::npos);
}

TEST(Roofline, NeverClamps) {
  RooflineInput input = busy(1.3, 0.1);
  EXPECT_DOUBLE_EQ(*roofline(input, roofs()).sol_fraction(), 1.3);
}

}  // namespace
}  // namespace gpuwhy
