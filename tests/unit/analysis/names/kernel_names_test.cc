// SPDX-License-Identifier: Apache-2.0
#include "analysis/names/kernel_names.h"

#include <random>
#include <set>

#include "analysis/names/demangle.h"
#include "analysis/names/rules.h"
#include "testing.h"

namespace gpuwhy {
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
  EXPECT_EQ(
      bare_kernel_name("void unnamed>::f<unnamed>::T<2>, int, 8>(char *, unnamed>::M<T1>, int)"),
      "f<T<2>, int, 8>")
      << "as ncu prints it";
  EXPECT_EQ(bare_kernel_name("void f<4, unnamed>::g(It &)::[lambda() (instance 1)]>(int)"),
            bare_kernel_name("void f<4, at::<unnamed>::g(It &)::[lambda() (instance 1)]>(int)"));
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

std::string short_name(const char* name) {
  return short_kernel_names({name})[0];
}

TEST(Names, AProductIsCalledByItsTypesAndTile) {
  EXPECT_EQ(short_name("sm80_xmma_gemm_f32f32_f32f32_f32_tn_n_tilesize128x128x8_stage3_"
                       "warpsize2x2x1_ffma_aligna4_alignc4_execute_kernel__5x_cublas"),
            "sm80_xmma_gemm f32f32 tn_n 128x128x8");
  EXPECT_EQ(short_name("sm80_xmma_gemm_f32f32_f32f32_f32_tn_n_tilesize128x128x8_stage3_"
                       "warpsize2x2x1_ffma_aligna4_alignc4_execute_split_k_kernel__5x_cublas"),
            "sm80_xmma_gemm f32f32 tn_n 128x128x8 split_k");
  EXPECT_EQ(short_name("sm80_xmma_fprop_implicit_gemm_f16f16_f16f16_f16_nhwckrsc_nhwc_"
                       "tilesize128x128x32_stage4_warpsize2x2x1_g1_tensor16x8x16_kernel_trt"),
            "sm80_xmma_fprop_implicit_gemm f16f16 ...krsc_nhwc 128x128x32");
  EXPECT_EQ(short_name("sm90_xmma_gemm_bf16bf16_tn"), "sm90_xmma_gemm_bf16bf16_tn");
  const auto names = short_kernel_names(
      {"Cijk_Alik_Bljk_BBS_BH_Bias_HA_S_SAV_UserArgs_MT256x32x64_MI16x16x1_WS64_WG64_4_1",
       "Cijk_Alik_Bljk_BBS_BH_Bias_HA_S_SAV_UserArgs_MT32x32x256_MI16x16x1_WS64_WG32_8_1",
       "Cijk_Alik_Bljk_BBS_BH_Bias_HA_S_SAV_UserArgs_MT32x32x256_MI16x16x1_WS64_WG16_4_4"});
  EXPECT_EQ(names[0], "Cijk_Alik_Bljk_BBS MT256x32x64");
  EXPECT_EQ(names[1], "Cijk_Alik_Bljk_BBS MT32x32x256 [WG32_8_1]");
  EXPECT_EQ(names[2], "Cijk_Alik_Bljk_BBS MT32x32x256 [WG16_4_4]");
  EXPECT_EQ(short_name("Cijk_MT"), "Cijk_MT");
}

TEST(Names, AShellIsCalledByWhatItDoes) {
  EXPECT_EQ(short_name("void at::native::vectorized_elementwise_kernel<(int)4, "
                       "at::native::BinaryFunctor<c10::BFloat16, c10::BFloat16, c10::BFloat16, "
                       "at::native::binary_internal::MulFunctor<float>>, "
                       "std::array<char *, (unsigned long)3>>(int, T2, T3)"),
            "mul bf16");
  EXPECT_EQ(short_name("void at::native::elementwise_kernel<(int)128, (int)2, void "
                       "at::native::gpu_kernel_impl_nocast<at::native::CUDAFunctor_add<float>>("
                       "at::TensorIteratorBase &, const T1 &)::[lambda(int) (instance 1)]>(int)"),
            "add f32");
  EXPECT_EQ(short_name("void at::native::vectorized_elementwise_kernel<4, "
                       "at::native::bfloat16tofloat32_copy_kernel_cuda(at::TensorIteratorBase&)::"
                       "{lambda(c10::BFloat16)#1}, std::array<char*, 2ul> >(int)"),
            "copy bf16 -> f32");
  EXPECT_EQ(
      short_name("void at::native::unrolled_elementwise_kernel<at::native::"
                 "direct_copy_kernel_cuda(at::TensorIteratorBase &)::[lambda() (instance 3)]"
                 "::operator ()() const::[lambda() (instance 7)]::operator ()() const::"
                 "[lambda(float) (instance 1)], std::array<char *, (unsigned long)2>, (int)4, "
                 "at::native::memory::LoadWithCast<(int)1>>(int, T1, T2)"),
      "copy -> f32")
      << "the source's type is known at run time only";
  EXPECT_EQ(
      short_name("void at::native::vectorized_elementwise_kernel<8, at::native::(anonymous "
                 "namespace)::silu_kernel(at::TensorIteratorBase&)::{lambda()#1}::operator()()"
                 " const::{lambda(c10::BFloat16)#1}, std::array<char*, 2ul> >(int)"),
      "silu bf16");
  EXPECT_EQ(
      short_name("void at::native::elementwise_kernel<128, 2, at::native::gpu_kernel_impl<"
                 "at::native::direct_copy_kernel_cuda(at::TensorIteratorBase&)::{lambda()#3}::"
                 "operator()() const::{lambda(int)#1}>(at::TensorIteratorBase&)>(int)"),
      "copy i32");
  EXPECT_EQ(short_name("void at::native::vectorized_elementwise_kernel<(int)2, "
                       "at::native::FillFunctor<long>, std::array<char *, 1>>(int, T2, T3)"),
            "fill i64");
  EXPECT_EQ(
      short_name("void at::native::reduce_kernel<(int)512, (int)1, at::native::ReduceOp<float,"
                 " at::native::ArgMaxOps<float>, unsigned int, long, (int)4>>(T3)"),
      "reduce argmax f32");
  EXPECT_EQ(short_name("void flash::flash_fwd_kernel<Flash_fwd_kernel_traits<(int)128, (int)128, "
                       "(int)64, (int)4, (bool)0, (bool)0, cutlass::bfloat16_t, "
                       "Flash_kernel_traits<(int)128, (int)128, (int)64, (int)4, "
                       "cutlass::bfloat16_t>>, (bool)0, (bool)1, (bool)0, (bool)0, (bool)1, "
                       "(bool)1, (bool)0, (bool)0>(flash::Flash_fwd_params)"),
            "flash_fwd hdim128 bf16 causal");
  EXPECT_EQ(
      short_name("void flash::flash_fwd_splitkv_kernel<Flash_fwd_kernel_traits<64, 64, 256, 4, "
                 "false, false, cutlass::half_t>, false, false, false>(flash::Params)"),
      "flash_fwd_splitkv hdim64 f16");
  EXPECT_EQ(short_name("void cutlass::Kernel<cutlass_80_simt_sgemm_128x32_8x5_nn_align1>(int)"),
            "cutlass_80_simt_sgemm_128x32_8x5_nn_align1");
  EXPECT_EQ(short_name("void cutlass::device_kernel<a::cuda::fp8_acc::GemmKernel>(int)"),
            "fp8_acc::GemmKernel");
  EXPECT_EQ(short_name(
                "void cutlass::device_kernel<cutlass::gemm::kernel::GemmUniversal<cute::tuple<int, "
                "int>, cutlass::gemm::collective::CollectiveMma<cutlass::Main<7, cute::tuple<"
                "cute::C<2>, cute::C<1>, cute::C<1>>>, cute::tuple<cute::C<128>, cute::C<256>, "
                "cute::C<64>>, cutlass::bfloat16_t>>>(Params)"),
            "GemmUniversal 128x256x64 bf16");
  EXPECT_EQ(short_name("void internal::gemvx::kernel<int, 4>(T)"), "gemvx::kernel<int, 4>");
  EXPECT_EQ(short_name("triton_poi_fused_add_0"), "triton_poi_fused_add_0");
}

TEST(Names, PhrasesThatAreEqualSayHowTheyDiffer) {
  const auto mul = [](const char* begin, const char* end) {
    return std::string("void at::native::") + begin +
           "at::native::BinaryFunctor<float, float, float, MulFunctor<float>>, " + end + ">(int)";
  };
  const std::vector<std::string> names = {
      mul("vectorized_elementwise_kernel<4, ", "a"), mul("vectorized_elementwise_kernel<8, ", "a"),
      mul("elementwise_kernel<128, 2, ", "a"), mul("elementwise_kernel<128, 2, ", "b")};
  EXPECT_EQ(short_kernel_names(names),
            (std::vector<std::string>{"mul f32 [vec4]", "mul f32 [vec8]", "mul f32 [128x2] #1",
                                      "mul f32 [128x2] #2"}));
}

TEST(Names, MangledNamesBecomeReadable) {
  EXPECT_EQ(readable_kernel_name("_ZN1a1fILi4EfLb1EEEvPT0_"), "a::f<4, float, true>");
  EXPECT_EQ(readable_kernel_name("_Z9my_kernelPfi"), "my_kernel");
  EXPECT_EQ(readable_kernel_name("_ZN12_GLOBAL__N_16kernelE.kd"), "kernel");
  EXPECT_EQ(readable_kernel_name("my_kernel.kd"), "my_kernel");
  EXPECT_EQ(readable_kernel_name("_Z1fi [clone .cold]"), "f");
  EXPECT_EQ(
      readable_kernel_name("_ZN7sgl_hip10activation18act_and_mul_kernelI14__hip_bfloat16TnPFT_"
                           "RKS3_EXadL_Z4siluIS2_ES3_S5_EEEEvPS3_PS4_i"),
      "sgl_hip::activation::act_and_mul_kernel<__hip_bfloat16, silu<>>");
  EXPECT_EQ(readable_kernel_name("_ZN1a1bILin3ENS_1cIJDF16bEEEEEvv"), "a::b<-3, c<bfloat16>>");
  EXPECT_EQ(readable_kernel_name("_ZN4core3fooB17h0123456789abcdefE"), "core::foo<...>");
  EXPECT_EQ(readable_kernel_name("_ZN5crate3foo17h0123456789abcdefE"), "crate::foo");
  EXPECT_EQ(readable_kernel_name("_RNvNtCs1a2b_5crate6module4name"), "crate::module::name");
  EXPECT_EQ(readable_kernel_name("_Z"), "_Z");
  EXPECT_EQ(readable_kernel_name("_Z99999999999999999999f"), "_Z99999999999999999999f");
  EXPECT_EQ(readable_kernel_name("plain"), "plain");
  EXPECT_EQ(bare_kernel_name("_ZN1a1bILi3EEEvv"), "b<3>");
}

TEST(Names, AMangledNameThatWantsToGrowDoesNot) {
  // Each argument doubles the one before it, if back references are printed.
  std::string name = "_Z1fI";
  for (int i = 0; i < 4000; ++i) {
    name += "1pIS_S_E";
  }
  EXPECT_LE(readable_kernel_name(name).size(), name.size());
  const std::string deep = "_Z1fI" + std::string(50000, 'P') + "i";
  EXPECT_LE(readable_kernel_name(deep).size(), deep.size());
  std::mt19937 random(5);
  const std::string alphabet = "_ZNIELJXSTPKDFb1234567890fi.R";
  for (int round = 0; round < 20000; ++round) {
    std::string odd = round % 2 == 0 ? "_ZN" : "_R";
    for (std::size_t n = random() % 24; n > 0; --n) {
      odd += alphabet[random() % alphabet.size()];
    }
    ASSERT_LE(readable_kernel_name(odd).size(), 20 * odd.size());
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
}  // namespace gpuwhy
