// SPDX-License-Identifier: Apache-2.0
//
// What one GPU holds and sends, worked out by hand.
#include "model/placement.h"

#include "base/json.h"
#include "config/presets.h"
#include "testing.h"

namespace gpuwhy {
namespace {

Llm placed(const std::string& name) {
  return llm_from_config(embedded_yaml("model/llm/" + name + ".yaml").at("config"));
}

GpuSpec gpu_of(const std::string& name) {
  return *find_gpu(gpu_table(embedded_yaml("hardware/gpus.yaml")), name).gpu;
}

// 8,030,261,248 weights of 2 bytes; 131,072 bytes per token; 90 % of 80 GiB.
TEST(Placement, OfAModelOnOneGpu) {
  const MemoryNeed need = memory_need(placed("llama_3_1_8b"), {}, 4096);
  EXPECT_EQ(need.weight_bytes, 16'060'522'496);
  EXPECT_EQ(need.sequence.sum(), 536'870'912);
  const std::int64_t usable = *usable_bytes(gpu_of("H100-SXM5-80GB"));
  EXPECT_EQ(usable, 77'309'411'328);
  EXPECT_EQ(need.sequences_in(usable), 114);  // (77.31 - 16.06) / 0.537
  EXPECT_EQ(need.sequences_in(16'000'000'000), 0);
}

// Two stages of 16 layers: the one with the head has a norm more than the one with the table.
TEST(Placement, StagesOfAPipelineHoldHalf) {
  const MemoryNeed need = memory_need(placed("llama_3_1_8b"), {1, 2, 1}, 4096);
  EXPECT_EQ(need.weight_bytes, (8'030'261'248 - 4096) / 2 * 2 + 4096 * 2);
  EXPECT_EQ(need.sequence.sum(), 268'435'456);
  expect_error(
      [] {
        memory_need(placed("llama_3_1_8b"), {1, 33, 1}, 1);
      },
      ErrorKind::kUsage, HasSubstr("33 stages"), "");
}

// 58 layers of 256 experts of 3 x 7168 x 2048 weights, a byte each and a scale for 128 x 128.
TEST(Placement, ExpertsAreDividedWhole) {
  const Llm llm = placed("deepseek_v3");
  const std::int64_t experts = 58 * 256LL * 3 * 7168 * 2048;
  const std::int64_t all = memory_need(llm, {}, 1).weight_bytes;
  const std::int64_t divided = memory_need(llm, {1, 1, 64}, 1).weight_bytes;
  EXPECT_EQ(all - divided, experts / 64 * 63 / 16'384 * 16'388);
  expect_error(
      [&] {
        memory_need(llm, {1, 1, 7}, 1);
      },
      ErrorKind::kUsage, HasSubstr("256 experts do not divide among 7"), "");
}

// Two sums per layer and one of the table, 8 tokens of 4096 values of 2 bytes, 450 GB/s one way.
TEST(Placement, LinksCarryEverySumOnce) {
  const Llm llm = placed("llama_3_1_8b");
  const LinkTime time = link_time(llm, 8, {4, 1, 1}, gpu_of("H100-SXM5-80GB"));
  EXPECT_EQ(time.all_reduces, 65);
  EXPECT_EQ(time.bytes, 65'536);
  EXPECT_NEAR(*time.seconds, 65 * 65'536 / 450e9, 1e-12);
  EXPECT_THAT(link_time(llm, 8, {4, 1, 1}, gpu_of("L20")).reason, HasSubstr("no link"));
  EXPECT_FALSE(link_time(llm, 8, {}, gpu_of("H100-SXM5-80GB")).seconds.has_value());
}

// Kimi K2.5: experts in 4 bits with a scale for 32, all else in bf16.
TEST(Placement, ModulesThatStayWideAreNotNarrow) {
  Json config = embedded_yaml("model/llm/kimi_k2.yaml").at("config");
  config["quantization_config"] = {
      {"quant_method", "compressed-tensors"},
      {"ignore",
       {"lm_head", "re:.*self_attn.*", "re:.*shared_experts.*",
        "re:.*mlp\\.(gate|up|gate_up|down)_proj.*"}},
      {"config_groups",
       {{"group_0", {{"weights", {{"num_bits", 4}, {"type", "int"}, {"group_size", 32}}}}}}}};
  const Llm llm = llm_from_config(config);
  EXPECT_DOUBLE_EQ(llm.width(LlmPart::kQkv).bits(), 16);
  EXPECT_DOUBLE_EQ(llm.width(LlmPart::kShared).bits(), 16);
  EXPECT_DOUBLE_EQ(llm.width(LlmPart::kMlp).bits(), 16);
  EXPECT_LT(llm.width(LlmPart::kExperts).bits(), 5);
  EXPECT_DOUBLE_EQ(placed("deepseek_v4_flash").width(LlmPart::kExperts).bits(), 4.25);
}

}  // namespace
}  // namespace gpuwhy
