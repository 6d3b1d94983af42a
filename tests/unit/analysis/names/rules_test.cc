// SPDX-License-Identifier: Apache-2.0
//
// The families of conf/rules/kernels.yaml, on names as frameworks give them, and rules of a user.

#include "analysis/names/kernel_words.h"
#include "analysis/names/rules_json.h"
#include "base/json.h"
#include "config/presets.h"
#include "testing.h"

namespace gpuwhy {
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

// The first word of each group is the family.
void expect_families(const std::vector<std::vector<const char*>>& groups) {
  for (const std::vector<const char*>& group : groups) {
    for (std::size_t i = 1; i < group.size(); ++i) {
      EXPECT_EQ(family(group[i]), group[0]) << group[i];
    }
  }
}

TEST(Rules, KernelsOfServingEngines) {
  expect_families({
      {"gemm", "void marlin::Marlin<(long)1125899906909960, (int)256>(const int4 *)",
       "void gptq_marlin_repack_kernel<256, 4, false>(unsigned int const*)",
       "void machete::prepack_B_kernel<machete::PrepackedLayout>(int)",
       "void deep_gemm::sm90_fp8_gemm_1d2d_impl<0u, 7168u, 2048u>(float*)",
       "_w8a8_triton_block_scaled_mm", "nvjet_sm100_tst_256x128_64x5_2x1_2cta_v_bz_TNT",
       "void router_gemm_kernel_bf16_output<__nv_bfloat16, 128>(__nv_bfloat16*)",
       "void cutlass::device_kernel<cutlass::gemm::kernel::GemmUniversal<cute::tuple<int, int>>>()"},
      {"gemv", "void vllm::wvSplitK_hf_sml_<__nv_bfloat16, 64, 2>(int, int)",
       "void mul_mat_vec_q<(ggml_type)12, 1>(void const*)"},
      {"attention", "void deep_gemm::sm90_fp8_paged_mqa_logits<64u, 64u, 128u>(unsigned int)",
       "cudnn_generated_fort_native_sdpa_sm100_flash_fprop_f16_knob_3_128x128x128",
       "void flashinfer::BatchDecodeWithPagedKVCacheKernel<2u, 4u>(int)",
       "void flashinfer::PersistentVariableLengthMergeStatesKernel<8u, 16u>(float*)",
       "_fwd_grouped_kernel_stage1", "_fwd_kernel_stage2", "_fwd_kernel", "reduce_segments",
       "merge_state_v2_kernel", "kernel_mha", "triton_tem_fused_flex_attention_0",
       "void vllm::topKPerRowDecode<512, true>(float const*)",
       "fmhaSm100fKernel_QkvBfloat16OBfloat16HQk192HV128SeparateQkvCausalVarSeqQ128Kv128"},
      {"kv_cache", "void vllm::concat_and_cache_mla_kernel<__nv_bfloat16, unsigned char>(int)",
       "void vllm::cp_gather_indexer_k_quant_cache_kernel<8>(char const*)",
       "void flashinfer::AppendPagedKVCacheKernel<128u, 8u>(int)",
       "create_flashinfer_kv_indices_triton", "void transfer_kernel_impl<1>(int)"},
      {"communication", "void deep_ep::layout::get_dispatch_layout<256, 4, 8>(long const*)",
       "void tensorrt_llm::kernels::mnnvl::oneshotAllreduceFusionKernel<8>(int)",
       "void tensorrt_llm::kernels::moe_alltoall::moeA2ACombineKernel<8>(int)",
       "ncclSymkDevKernel_AllReduce_AGxLLMC_R_Sum_bf16(ncclSymkDevWorkArgs4K)"},
      {"moe", "fused_moe_kernel", "void vllm::moe::topkGating<8, 256, 4>(int)",
       "void cutlass::device_kernel<cutlass::gemm::kernel::GemmUniversal<"
       "cutlass::gemm::GroupProblemShape<cute::tuple<int>>>>()",
       "void tensorrt_llm::kernels::cutlass_kernels::doActivationKernel<__nv_bfloat16>(int)",
       "void tensorrt_llm::kernels::cutlass_kernels::expandInputRowsKernel<float>(int)",
       "bmm_E2m1_E2m1E2m1_Fp32_t128x8x512u2_s4_et128x8_m128x8x64_cga1x1x1_16dp256b_TN",
       "_matmul_ogs_NNT_bf16xbf16xmxfp4_128x256x64x1_swiglu", "ep_scatter_2",
       "_fwd_kernel_ep_gather", "_topk_forward",
       "void deep_gemm::sm90_m_grouped_fp8_gemm_masked_1d2d_impl<7168u>(int)"},
      {"quantise", "_silu_mul_fp8_quant_deep_gemm", "void vllm::cvt_fp16_to_fp4<float, false>(int)",
       "_downcast_to_mxfp", "void vllm::segmented_max_reduction_strided<float>(float*)",
       "quantize_q8_1"},
      {"norm", "void flashinfer::norm::FusedAddRMSNormKernel<8u, __nv_bfloat16>(__nv_bfloat16*)",
       "triton_red_fused__to_copy_add_mean_mul_pow_rsqrt_2"},
      {"rope", "void flashinfer::BatchQKApplyRotaryPosIdsCosSinCacheKernel<true, 128u>(int)",
       "_triton_mrope_forward"},
      {"activation", "void flashinfer::activation::act_and_mul_kernel<__nv_bfloat16, &silu>(int)"},
      {"sampling", "void flashinfer::sampling::TopKTopPSamplingFromProbKernel<1024u>(float*)",
       "void flashinfer::sampling::OnlineSoftmaxFusedKernel<1024u, 4u, float, true>(float*)",
       "void vllm::apply_repetition_penalties_kernel<float>(float*)", "_gumbel_sample_kernel",
       "_topk_log_softmax_kernel", "apply_token_bitmask_inplace_kernel",
       "rejection_greedy_sample_kernel", "void TreeSpeculativeSamplingTargetOnly<1024u>(int*)"},
      {"spec_decode", "eagle_prepare_next_token_padded_kernel", "assign_draft_cache_locs"},
      {"ssm",
       "void selective_scan_fwd_kernel<Selective_Scan_fwd_kernel_traits<128>>(SSMParamsBase)",
       "_causal_conv1d_update_kernel", "_chunk_scan_fwd_kernel", "_state_passing_fwd_kernel",
       "chunk_gated_delta_rule_fwd_kernel_h_blockdim64", "chunk_fwd_kernel_o",
       "recompute_w_u_fwd_kernel", "merge_16x16_to_64x64_inverse_kernel", "l2norm_fwd_kernel2"},
      {"lora", "_lora_shrink_kernel", "_lora_expand_kernel", "_fused_moe_lora_kernel"},
  });
}

TEST(Rules, AWordInsideOfAnotherIsATrap) {
  EXPECT_EQ(family("prepare_prefill_inputs"), "other") << "no fill";
  EXPECT_EQ(family("void at::native::vectorized_elementwise_kernel<4, FillFunctor<float>>(int)"),
            "copy");
  EXPECT_EQ(family("void fbgemm_gpu::permute_2D_data_kernel<false, int>(int)"), "embedding")
      << "no gemm";
  EXPECT_EQ(family("void cudnn::ops::scalePackedTensor_kernel<float, float>(float*)"),
            "elementwise");
  EXPECT_EQ(family("triton_poi_fused__scaled_dot_product_attention_clone_3"), "elementwise")
      << "Inductor names what it was fused from";
  EXPECT_EQ(family("void cutlass::device_kernel<a::grouped_gemm::cuda::fp8::GemmKernel>(int)"),
            "gemm")
      << "a namespace is not a kernel";
  EXPECT_EQ(family("void a::grouped_gemm::cuda::utils::transpose<512>(int)"), "copy");
}

TEST(Rules, ATopKOfAnyPurposeIsASort) {
  EXPECT_EQ(family("void at::native::sbtopk::gatherTopK<float, unsigned int, 1, false>(int)"),
            "sort");
  EXPECT_EQ(family("void at::native::bitonicSortKVInPlace<-2, -1, 16, 16, long>(int)"), "sort");
  EXPECT_EQ(family("void cub::DeviceRadixSortOnesweepKernel<cub::Policy, false>(int*)"), "sort");
  EXPECT_EQ(family("void cub::DeviceScanKernel<cub::AgentScanPolicy<128>>(int)"), "reduction");
  EXPECT_EQ(family("void at::native::reduce_kernel<512, 1, ReduceOp<ArgMaxOps<float>>>(int)"),
            "sampling");
}

TEST(Rules, WordsWithGapsAndEnds) {
  const KernelText text("void my::ns::Fused_Thing_Kernel_12<my::Arg<4>>(other *)");
  EXPECT_TRUE(text.fits("thing"));
  EXPECT_TRUE(text.fits("my::ns"));
  EXPECT_TRUE(text.fits("arg<4"));
  EXPECT_FALSE(text.fits("other")) << "a parameter";
  EXPECT_TRUE(text.fits("fused*kernel*arg"));
  EXPECT_FALSE(text.fits("kernel*fused"));
  EXPECT_TRUE(text.fits("^fused"));
  EXPECT_FALSE(text.fits("^thing"));
  EXPECT_TRUE(text.fits("^*thing"));
  EXPECT_FALSE(text.fits("^*arg")) << "a template argument";
  EXPECT_TRUE(text.fits("kernel$")) << "a number may follow";
  EXPECT_TRUE(text.fits("kernel_12$"));
  EXPECT_FALSE(text.fits("thing$"));
  EXPECT_TRUE(text.fits("^fused_thing_kernel$"));
  EXPECT_FALSE(text.fits("^thing_kernel$"));
  EXPECT_TRUE(text.fits("^fused*kernel$"));
  EXPECT_FALSE(text.fits("^fused_thing*thing_kernel$")) << "parts do not overlap";
  EXPECT_FALSE(KernelText("").fits("a"));
  EXPECT_FALSE(KernelText("a").fits("^ab"));
}

TEST(Rules, RowsOfTheUserComeFirst) {
  Rules rules = rules_from(embedded_yaml("rules/kernels.yaml"), embedded_yaml("rules/stages.yaml"));
  const std::size_t num_embedded = rules.stages.size();
  add_user_rules("my.yaml",
                 "families: [{family: mine, words: [My_GEMM]}]\n"
                 "stages: [{domain: app, text: read*, stage: prefill}]\n",
                 rules);
  EXPECT_EQ(family_of(rules, "void my_gemm_kernel()"), "mine");
  EXPECT_EQ(family_of(rules, "void other_gemm_kernel()"), "gemm");
  EXPECT_EQ(rules.stages.size(), num_embedded + 1);
  EXPECT_EQ(rules.stages[0].domain, "app");
  ASSERT_EQ(rules.notes.size(), 1U);
  EXPECT_EQ(rules.notes[0].count, 2);
  EXPECT_THAT(rules.notes[0].sentence, testing::ContainsRegex("my.yaml .sha256 [0-9a-f]{64}"));
}

TEST(Rules, MarksOfTheCommandLineComeBeforeThoseOfAFile) {
  Rules rules;
  add_user_rules("my.yaml", "stages: [{domain: app, text: read*, stage: prefill}]\n", rules);
  add_marks({"decode=loop", "prefill=app:read it"}, {"Step#*"}, rules);
  EXPECT_EQ(rules.user_source, "--mark, --step, rules of my.yaml");
  EXPECT_EQ(rules.num_user_stages, 5U) << "app:read it may be a domain and a text, or all text";
  EXPECT_EQ(rules.notes[1].sentence,
            "stages are marked by --mark decode=loop, --mark prefill=app:read it, --step Step#*");
  const auto stage_of = [&](std::string_view domain, std::string_view text) {
    for (const StageRule& rule : rules.stages) {
      if (fits(rule, domain, text)) {
        return rule.stage;
      }
    }
    return std::string("none");
  };
  EXPECT_EQ(stage_of("", "loop"), "decode");
  EXPECT_EQ(stage_of("", "loop 2"), "none");
  EXPECT_EQ(stage_of("app", "read it"), "prefill");
  EXPECT_EQ(stage_of("", "app:read it"), "prefill");
  EXPECT_EQ(stage_of("", "read it"), "none");
  EXPECT_EQ(stage_of("", "Step#12"), "step");
}

TEST(Rules, AMarkNamesAStageAndARange) {
  const auto refused = [](const std::vector<std::string>& marks,
                          const std::vector<std::string>& steps, const char* what) {
    Rules rules;
    expect_error([&] { add_marks(marks, steps, rules); }, ErrorKind::kUsage,
                 testing::HasSubstr(what), testing::_);
  };
  refused({"loop"}, {}, "--mark takes STAGE=NAME, not 'loop'");
  refused({"=loop"}, {}, "not '=loop'");
  refused({"decode="}, {}, "not 'decode='");
  refused({}, {""}, "--step takes the name of a range");
}

TEST(Rules, AStageBearsNoWordOfARow) {
  for (const std::string word :
       {"all", "capture", "steady", "startup", "ending", "outside", "Capture"}) {
    Rules rules;
    const auto mark = [&] { add_marks({word + "=loop"}, {}, rules); };
    const auto rule = [&] {
      add_user_rules("my.yaml", "stages: [{domain: LLM, text: a, stage: " + word + "}]\n", rules);
    };
    if (word == "Capture") {
      mark();
      rule();
      EXPECT_EQ(rules.num_user_stages, 2U);
      continue;
    }
    const auto hint = testing::HasSubstr("my_" + word);
    expect_error(mark, ErrorKind::kUsage,
                 "--mark cannot name a stage '" + word + "': rows of gpuwhy's own are called so",
                 hint);
    expect_error(
        rule, ErrorKind::kUsage,
        testing::StartsWith("my.yaml: line 1, row 1 of stages cannot name a stage '" + word + "'"),
        hint);
  }
  Rules rules;
  expect_error(
      [&] { add_user_rules("my.yaml", "stages: [{domain: '', text: a, stage: ''}]\n", rules); },
      ErrorKind::kUsage, testing::HasSubstr("it needs a name"), testing::_);
}

TEST(Rules, AnErrorNamesTheFileAndTheRow) {
  const auto refused = [](const char* text, const char* why) {
    Rules rules;
    expect_error([&] { add_user_rules("my.yaml", text, rules); }, ErrorKind::kUsage,
                 testing::AllOf(testing::HasSubstr("my.yaml"), testing::HasSubstr(why)),
                 testing::HasSubstr("conf/rules"));
  };
  refused("", "neither stages nor families");
  refused("stage: []", "'stage' is none of");
  refused("stages: 7", "stages is not a list");
  refused("stages: [7]", "row 1 of stages has no keys");
  refused("stages: [{domain: '', text: a, stage: b}, {domain: '', text: a}]",
          "row 2 of stages: stage is not a text");
  refused("stages: []\n\nfamilies:\n  - {family: a, words: [b]}\n  - {family: a}\n",
          "line 5, row 2 of families");
  refused("families: [{family: [], words: [a]}]", "row 1 of families: family is not a text");
  refused("families: [{family: a, words: ['']}]", "row 1 of families has no words");
  refused("families: [{family: a, words: ['^*$']}]", "row 1 of families has no words");
  refused("families: [{family: a, words: 7}]", "row 1 of families: a word is not a text");
}

}  // namespace
}  // namespace gpuwhy
