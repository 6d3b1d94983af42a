// SPDX-License-Identifier: Apache-2.0
#include "analysis/counters/counter_roofline.h"

#include "testing.h"

namespace gpuwhy {
namespace {

GpuSpec gpu(const std::string& name, const std::string& device_name, const std::string& capability,
            std::int64_t sms, const std::map<std::string, double>& dense_tflops) {
  GpuSpec gpu;
  gpu.name = name;
  gpu.device_names = {device_name};
  gpu.compute_capability = capability;
  gpu.sms = sms;
  gpu.dense_tflops = dense_tflops;
  gpu.label_gb_per_s = 1000;
  return gpu;
}

struct Launch {
  Counters counters;

  explicit Launch(std::string_view name, std::string_view compute_capability = "8.6") {
    CounterResult& result = counters.results.emplace_back();
    result.demangled_name = counters.strings.intern(name);
    result.compute_capability = counters.strings.intern(compute_capability);
  }

  Launch& set(std::string_view metric, double value) {
    counters.results[0].metrics.push_back({counters.strings.intern(metric), {}, value});
    return *this;
  }

  RooflineInput input() {
    complete_results(counters);
    return roofline_input(counters, counters.results[0]);
  }

  GpuRoofs roofs(const std::vector<GpuSpec>& table = {}) {
    complete_results(counters);
    return roofs_of(counters, counters.results[0], table);
  }
};

constexpr const char* kFadd = "smsp__sass_thread_inst_executed_op_fadd_pred_on.sum";
constexpr const char* kFmul = "smsp__sass_thread_inst_executed_op_fmul_pred_on.sum";
constexpr const char* kFfma = "smsp__sass_thread_inst_executed_op_ffma_pred_on.sum";

TEST(CounterRoofline, FusedInstructionsAreTwoOperations) {
  const RooflineInput input = Launch("f").set(kFadd, 1).set(kFmul, 10).set(kFfma, 100).input();
  EXPECT_EQ(input.flops, 211);
  EXPECT_EQ(input.dtype, "fp32");
}

TEST(CounterRoofline, StallsAreSharesOfResidentWarps) {
  const auto state = [](const std::string& name) {
    return "smsp__average_warps_issue_stalled_" + name + "_per_issue_active.ratio";
  };
  const RooflineInput input = Launch("f")
                                  .set(state("selected"), 1)
                                  .set(state("barrier"), 3)
                                  .set(state("long_scoreboard"), 6)
                                  .set("smsp__pcsamp_warps_issue_stalled_wait", 99)
                                  .input();
  ASSERT_EQ(input.stalls.size(), 2U) << "samples count only without warp states";
  EXPECT_EQ(input.stalls[0].name, "long_scoreboard");
  EXPECT_DOUBLE_EQ(input.stalls[0].fraction, 0.6);
  EXPECT_DOUBLE_EQ(input.stalls[1].fraction, 0.3);
}

TEST(CounterRoofline, SamplesTellStallsWithoutWarpStates) {
  const RooflineInput input = Launch("f")
                                  .set("smsp__pcsamp_warps_issue_stalled_wait", 30)
                                  .set("smsp__pcsamp_warps_issue_stalled_wait_not_issued", 25)
                                  .set("smsp__pcsamp_warps_issue_stalled_selected", 10)
                                  .input();
  ASSERT_EQ(input.stalls.size(), 1U);
  EXPECT_DOUBLE_EQ(input.stalls[0].fraction, 0.75);
  EXPECT_TRUE(Launch("f").set("smsp__pcsamp_warps_issue_stalled_wait", 0).input().stalls.empty());
}

TEST(CounterRoofline, RatesByTheCycleBecomeOperations) {
  const RooflineInput input =
      Launch("f")
          .set("smsp__sass_thread_inst_executed_op_fadd_pred_on.sum.per_cycle_elapsed", 0)
          .set("smsp__sass_thread_inst_executed_op_fmul_pred_on.sum.per_cycle_elapsed", 0)
          .set("smsp__sass_thread_inst_executed_op_ffma_pred_on.sum.per_cycle_elapsed", 5)
          .set("smsp__cycles_elapsed.avg.per_second", 2e9)
          .set("gpu__time_duration.sum", 1000)
          .input();
  EXPECT_DOUBLE_EQ(*input.flops, 10 * 2000);
}

TEST(CounterRoofline, TensorWorkIsCountedOnce) {
  const RooflineInput input =
      Launch("gemm", "12.0")
          .set("sm__ops_path_tensor_src_bf16_dst_fp32.sum", 1000)
          .set("sm__ops_path_tensor_src_bf16_dst_fp32_sparsity_off.sum", 900)
          .set("sm__ops_path_tensor_src_bf16_dst_fp32_sparsity_on.sum", 100)
          .set("sm__ops_path_tensor_src_fp16_dst_fp32_sparsity_off.sum", 30)
          .input();
  EXPECT_EQ(input.flops, 1000);
  EXPECT_EQ(input.dtype, "bf16");
}

TEST(CounterRoofline, HoppersWgmmaIsUnknownNotNone) {
  const auto launch = [](std::string_view name, std::string_view capability) {
    return Launch(name, capability)
        .set("derived__smsp__inst_executed_pipe_tensor_x512", 0)
        .set("smsp__cycles_elapsed.avg.per_second", 1e9)
        .set("gpu__time_duration.sum", 1000)
        .set(kFadd, 1)
        .set(kFmul, 1)
        .set(kFfma, 1)
        .input();
  };
  const RooflineInput hopper = launch("sm90_xmma_gemm_bf16", "9.0");
  EXPECT_FALSE(hopper.flops);
  EXPECT_NE(hopper.flops_reason.find("wgmma"), std::string::npos);
  EXPECT_EQ(launch("softmax", "9.0").flops, 4);
  EXPECT_EQ(launch("sm80_gemm", "8.0").flops, 4);
}

TEST(CounterRoofline, UncountedTensorWorkIsUnknown) {
  const RooflineInput input = Launch("cutlass_80_tensorop_bf16_s16816gemm")
                                  .set(kFadd, 1)
                                  .set(kFmul, 1)
                                  .set(kFfma, 1)
                                  .input();
  EXPECT_FALSE(input.flops);
  EXPECT_NE(input.flops_reason.find("not counted"), std::string::npos);
}

TEST(CounterRoofline, TrafficFromHalvesOrRates) {
  EXPECT_EQ(
      Launch("f").set("dram__bytes_read.sum", 3).set("dram__bytes_write.sum", 4).input().dram_bytes,
      7);
  EXPECT_EQ(Launch("f").set("dram__bytes_read.sum", 3).input().dram_bytes, std::nullopt);
  EXPECT_DOUBLE_EQ(*Launch("f")
                        .set("dram__bytes.sum.per_second", 1e9)
                        .set("gpu__time_duration.sum", 2000)
                        .input()
                        .dram_bytes,
                   2000);
}

TEST(CounterRoofline, L1IsOfTheWholeTime) {
  const char* const active = "l1tex__throughput.avg.pct_of_peak_sustained_active";
  EXPECT_EQ(Launch("f").set(active, 90).input().l1_fraction, std::nullopt);
  EXPECT_DOUBLE_EQ(*Launch("f")
                        .set(active, 90)
                        .set("gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed", 50)
                        .input()
                        .l1_fraction,
                   0.5);
}

TEST(CounterRoofline, WavesFromLimitsWhereTheyAreNotCounted) {
  Launch launch("f");
  launch.counters.results[0].shape = LaunchShape{{60, 1, 1}, {128, 1, 1}};
  const RooflineInput input = launch.set("launch__occupancy_limit_registers", 2)
                                  .set("launch__occupancy_limit_warps", 12)
                                  .set("launch__sm_count", 40)
                                  .input();
  EXPECT_DOUBLE_EQ(*input.waves, 0.75);
}

TEST(CounterRoofline, AttributesComeBeforeTheTable) {
  // A T4: 5001 MHz, 256 bits, 40 SMs of 64 lanes at 1590 MHz.
  const std::vector<GpuSpec> table = {
      gpu("T4", "Tesla T4", "7.5", 40, {{"fp32", 8.1}, {"fp16", 65}})};
  Launch launch("f", "7.5");
  launch.counters.results[0].device_name = launch.counters.strings.intern("Tesla T4");
  const GpuRoofs roofs = launch.set("device__attribute_max_mem_frequency_khz", 5'001'000)
                             .set("device__attribute_global_memory_bus_width", 256)
                             .set("device__attribute_multiprocessor_count", 40)
                             .set("device__attribute_max_gpu_frequency_khz", 1'590'000)
                             .roofs(table);
  EXPECT_DOUBLE_EQ(*roofs.memory_bytes_per_s, 320.064e9);
  EXPECT_DOUBLE_EQ(roofs.flops_per_s.at("fp32"), 40 * 64 * 2 * 1.59e9);
  EXPECT_DOUBLE_EQ(roofs.flops_per_s.at("fp16"), 65e12);
}

TEST(CounterRoofline, TheTableIsScaledToTheClockOfTheMeasurement) {
  const std::vector<GpuSpec> table = {gpu("X", "X", "12.0", 100, {{"fp32", 51.2}, {"bf16", 200}}),
                                      gpu("Y", "Y", "12.0", 50, {{"fp32", 25.6}})};
  // No name: found by compute capability and number of SMs. Boost is 51.2e12 / (100*128*2) = 2 GHz.
  const GpuRoofs roofs = Launch("f", "12.0")
                             .set("launch__sm_count", 100)
                             .set("sm__cycles_elapsed.avg.per_second", 1.5e9)
                             .roofs(table);
  EXPECT_EQ(roofs.name, "X");
  EXPECT_DOUBLE_EQ(roofs.flops_per_s.at("bf16"), 150e12);
  EXPECT_EQ(Launch("f", "12.0").roofs(table).flops_per_s.size(), 0U);
}

TEST(CounterRoofline, AGpuIsTheOneThatNothingElseCanBe) {
  const std::vector<GpuSpec> table = {gpu("small", "NVIDIA Z", "9.0", 50, {{"bf16", 100}}),
                                      gpu("large", "NVIDIA Z", "9.0", 100, {{"bf16", 200}}),
                                      gpu("twin", "NVIDIA W", "9.0", 100, {{"bf16", 300}})};
  const auto roofs_named = [&](const std::string& name, double sms) {
    Launch launch("f", "9.0");
    launch.counters.results[0].device_name = launch.counters.strings.intern(name);
    return launch.set("launch__sm_count", sms).roofs(table);
  };
  EXPECT_EQ(roofs_named("NVIDIA Z", 100).name, "large");
  EXPECT_EQ(roofs_named("Z", 50).name, "small");
  // Two of this name, two of this size, a name that goes on, a count that is none.
  EXPECT_THAT(roofs_named("NVIDIA Z", 0).flops_per_s, Not(Contains(Key("bf16"))));
  EXPECT_THAT(roofs_named("", 100).flops_per_s, Not(Contains(Key("bf16"))));
  EXPECT_THAT(roofs_named("NVIDIA W Laptop GPU", 100).flops_per_s, Not(Contains(Key("bf16"))));
  EXPECT_THAT(roofs_named("NVIDIA Z", 1e300).flops_per_s, Not(Contains(Key("bf16"))));
}

}  // namespace
}  // namespace gpuwhy
