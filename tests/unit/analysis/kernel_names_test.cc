// SPDX-License-Identifier: Apache-2.0
#include "analysis/kernel_names.h"

#include <random>
#include <set>

#include <gtest/gtest.h>

#include "analysis/rules.h"

namespace llmprof {
namespace {

TEST(Names, WhatAllNamesShareGoes) {
  EXPECT_EQ(bare_kernel_name("void at::native::vectorized_elementwise_kernel<(int)4, "
                             "at::native::CUDAFunctor_add<float>>(int, T2, T3)"),
            "vectorized_elementwise_kernel<4, CUDAFunctor_add<float>>");
  EXPECT_EQ(bare_kernel_name(
                "std::enable_if<!T7, void>::type internal::gemvx::kernel<int, (bool)1>(T13)"),
            "kernel<int, 1>");
  EXPECT_EQ(bare_kernel_name("std::enable_if<(((8)>(0)))&&(_typeConvert<T>::exists), void>::type "
                             "vllm::fused_add_rms_norm_kernel<c10::BFloat16, 8>(T1*, int)"),
            "fused_add_rms_norm_kernel<BFloat16, 8>")
      << "a > in round brackets compares";
  EXPECT_EQ(bare_kernel_name("void at::<unnamed>::f<a::(anonymous namespace)::g>(int)"), "f<g>");
  EXPECT_EQ(bare_kernel_name("ampere_sgemm_128x64_tn"), "ampere_sgemm_128x64_tn");
  EXPECT_EQ(bare_kernel_name("[CUDA graph, recorded as a whole]"),
            "[CUDA graph, recorded as a whole]");
  EXPECT_EQ(bare_kernel_name(""), "");
}

TEST(Names, LongNamesLoseTheirMiddleAndStayApart) {
  std::vector<std::string> names;
  for (int tile = 8; tile < 256; tile += 8) {
    names.push_back("sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize" + std::to_string(tile) +
                    "x128x64_warpgroupsize1x1x1_execute_segment_k_off_kernel__5x_cublas");
  }
  names.push_back(std::string(5000, 'x') + "a" + std::string(5000, 'y'));
  names.push_back(std::string(5000, 'x') + "b" + std::string(5000, 'y'));
  const auto shortened = short_kernel_names(names);
  EXPECT_EQ(std::set<std::string>(shortened.begin(), shortened.end()).size(), names.size());
  for (const std::string& name : shortened) {
    EXPECT_LE(name.size(), 150U);
  }
}

TEST(Names, NoTwoAreEverTheSame) {
  std::mt19937 random(3);
  const std::string alphabet = "ab<>():: ,#'12";
  for (int round = 0; round < 300; ++round) {
    std::set<std::string> distinct;
    for (int i = 0; i < 40; ++i) {
      std::string name;
      for (std::size_t n = random() % 12; n > 0; --n) {
        name += alphabet[random() % alphabet.size()];
      }
      distinct.insert(name);
    }
    const std::vector<std::string> names(distinct.begin(), distinct.end());
    const auto shortened = short_kernel_names(names);
    ASSERT_EQ(std::set<std::string>(shortened.begin(), shortened.end()).size(), names.size());
  }
}

}  // namespace
}  // namespace llmprof
