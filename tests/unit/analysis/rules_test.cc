// SPDX-License-Identifier: Apache-2.0
//
// The families of conf/rules/kernels.yaml, on names as frameworks give them.
#include <gtest/gtest.h>

#include "analysis/rules_json.h"
#include "base/json.h"
#include "config/presets.h"

namespace llmprof {
namespace {

std::string_view family(const char* name) {
  static const Rules kRules =
      rules_from(embedded_yaml("rules/kernels.yaml"), embedded_yaml("rules/stages.yaml"));
  return family_of(kRules, name);
}

TEST(Rules, AKernelIsWhatItIsCalledAndNotWhatItIsGiven) {
  EXPECT_EQ(
      family("void split_embedding_backward_kernel<c10::Half>(int, fbgemm_gpu::FixedDivisor)"),
      "embedding");
  EXPECT_EQ(family("void transpose_kernel<float2>(cublasTransposeParams<float2>)"), "copy");
  EXPECT_EQ(family("void at::native::elementwise_kernel<4, silu_functor>(int)"), "activation")
      << "template arguments say what it does";
}

TEST(Rules, OfOtherVendorsAndOtherLayers) {
  EXPECT_EQ(family("Cijk_Alik_Bljk_BBS_BH_Bias_HA_S_SAV_UserArgs_MT128x256x32"), "gemm");
  EXPECT_EQ(family("void cudnn::ops::nchwToNhwcKernel<float>(int)"), "copy");
  EXPECT_EQ(family("sm50_xmma_pooling_coalescedC_NHWC_kMAX_3"), "reduction");
  EXPECT_EQ(family("implicit_convolve_sgemm<float>"), "gemm");
  EXPECT_EQ(family("convert_2"), "copy") << "no convolution";
}

}  // namespace
}  // namespace llmprof
