// SPDX-License-Identifier: Apache-2.0
#include "analysis/kernels/kernel_chains.h"

#include "analysis/findings/fused_paths.h"
#include "analysis/profile.h"
#include "testing.h"
#include "trace_builder.h"

namespace gpuwhy {
namespace {

const Rules kRules = {{{"gemm", {"gemm"}}, {"elementwise", {"pow", "mean", "rsqrt", "mul", "add"}}},
                      {}};

// `steps` times a product, the kernels in between, and 10 ns for each.
Analysis analysis_of(int steps, const std::vector<std::vector<const char*>>& rows) {
  TraceBuilder made;
  const auto process = made.add_process();
  const auto stream = made.add_stream(process, made.add_device());
  std::int64_t time_ns = 0;
  for (int step = 0; step < steps; ++step) {
    for (const std::vector<const char*>& row : rows) {
      for (const char* name : row) {
        made.kernel(stream, time_ns, time_ns + 10, name);
        time_ns += 10;
      }
      made.kernel(stream, time_ns, time_ns + 10, "gemm");
      time_ns += 10;
    }
  }
  return profile(made.finish(), kRules).analysis;
}

TEST(KernelChains, TheRowWithMostTimeIsNamed) {
  const Analysis analysis =
      analysis_of(7, {{"add", "pow", "mean", "rsqrt", "mul"}, {"mul", "add"}, {"mul"}});
  ASSERT_FALSE(analysis.kernel_chains.empty());
  const KernelChains& chains = analysis.kernel_chains[0];
  EXPECT_EQ(chains.row_kernels, "add, pow, mean, rsqrt, mul");
  EXPECT_EQ(chains.num_rows, 7);
  EXPECT_EQ(chains.row_ns, 7 * 5 * 10);
  EXPECT_EQ(chains.row_fused_ns, 7 * 5) << "half of the longest, each time";
  EXPECT_EQ(chains.num_movers, 7 * 8);
  EXPECT_EQ(chains.fused_ns, 7 * (5 + 5 + 10)) << "half of the longest of a row, and one alone";
}

TEST(KernelChains, MoversAloneAreNotARow) {
  const Analysis analysis = analysis_of(7, {{"mul"}, {"add"}});
  ASSERT_FALSE(analysis.kernel_chains.empty());
  EXPECT_EQ(analysis.kernel_chains[0].row_kernels, "");
  EXPECT_EQ(analysis.kernel_chains[0].num_rows, 0);
}

TEST(KernelChains, TheSameKernelSeveralTimesIsNamedOnce) {
  const Analysis analysis = analysis_of(2, {std::vector<const char*>(40, "mul")});
  EXPECT_EQ(analysis.kernel_chains.at(0).row_kernels, "40 x mul");
  EXPECT_EQ(analysis.kernel_chains[0].row_ns, 2 * 40 * 10);
}

TEST(KernelChains, OfALongRowTheFirstKernelsAreNamed) {
  std::vector<const char*> row;
  for (int i = 0; i < 12; ++i) {
    row.push_back("mul");
    row.push_back("add");
  }
  const std::string text = analysis_of(2, {row}).kernel_chains.at(0).row_kernels;
  EXPECT_TRUE(text.ends_with("mul, add and 14 more")) << text;
}

TEST(KernelChains, WhatLiesWithinAnAttentionIsNotAlsoARow) {
  TraceBuilder made;
  const auto process = made.add_process();
  const auto stream = made.add_stream(process, made.add_device());
  std::int64_t time_ns = 0;
  for (const char* name : {"gemm", "mul", "softmax", "mul", "gemm", "add", "mul", "gemm"}) {
    made.kernel(stream, time_ns, time_ns + 10, name);
    time_ns += 10;
  }
  Rules rules = kRules;
  rules.families.push_back({"softmax", {"softmax"}});
  const KernelChains chains = profile(made.finish(), rules).analysis.kernel_chains.at(0);
  EXPECT_EQ(chains.num_attentions, 1);
  EXPECT_EQ(chains.attention_ns, 50);
  EXPECT_EQ(chains.num_movers, 2);
  EXPECT_EQ(chains.mover_ns, 20);
  EXPECT_EQ(chains.row_kernels, "add, mul");
}

TEST(FusedPaths, KnownByTheOrderOfTheirKernels) {
  const auto what = [](const char* kernels) {
    const FusedPath* path = fused_path_of(kernels);
    return path == nullptr ? std::string() : std::string(path->what);
  };
  EXPECT_EQ(what("add bf16, copy bf16 -> f32, pow_tensor_scalar f32, reduce mean f32, add f32, "
                 "rsqrt f32, mul f32"),
            "RMSNorm");
  EXPECT_EQ(what("mul bf16, neg bf16, CatArrayBatchedCopy, mul bf16, add bf16"),
            "rotary embedding");
  EXPECT_EQ(what("silu bf16, mul bf16"), "SwiGLU");
  EXPECT_EQ(what("fill f32, reduce max f32, add f32, exp f32, reduce sum f32, div f32"), "softmax");
  EXPECT_EQ(what("rsqrt f32, mean f32, pow f32"), "");
  EXPECT_EQ(what("mul bf16, silu bf16"), "");
  EXPECT_EQ(what(""), "");
}

TEST(FusedPaths, AdviceIsForTheEngineThatRan) {
  const FusedPath* path = fused_path_of("pow, mean, rsqrt, mul");
  ASSERT_NE(path, nullptr);
  EXPECT_NE(fused_path_advice(*path, "vllm").find("\"+rms_norm\""), std::string::npos);
  EXPECT_EQ(fused_path_advice(*path, "sglang").find("vLLM"), std::string::npos);
  EXPECT_NE(fused_path_advice(*path, "").find("fused RMSNorm"), std::string::npos);
}

}  // namespace
}  // namespace gpuwhy
