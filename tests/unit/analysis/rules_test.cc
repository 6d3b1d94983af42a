// SPDX-License-Identifier: Apache-2.0
//
// The families of conf/rules/kernels.yaml, on names as frameworks give them, and rules of a user.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "analysis/rules_json.h"
#include "base/json.h"
#include "config/presets.h"
#include "expect_error.h"

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
  refused({"all=loop"}, {}, "'all'");
  refused({}, {""}, "--step takes the name of a range");
}

TEST(Rules, AnErrorNamesTheFileAndTheRow) {
  const auto refused = [](const char* text, const char* why) {
    Rules rules;
    expect_error([&] { add_user_rules("my.yaml", text, rules); }, ErrorKind::kUsage,
                 testing::AllOf(testing::HasSubstr("my.yaml"), testing::HasSubstr(why)),
                 testing::HasSubstr("conf/rules"));
  };
  refused("", "neither stages nor families");
  refused("stage: []", "'stage' is neither");
  refused("stages: 7", "stages is no list");
  refused("stages: [7]", "row 1 of stages has no keys");
  refused("stages: [{domain: '', text: a, stage: b}, {domain: '', text: a}]",
          "row 2 of stages: stage is no text");
  refused("families: [{family: [], words: [a]}]", "row 1 of families: family is no text");
  refused("families: [{family: a, words: ['']}]", "row 1 of families has no words");
  refused("families: [{family: a, words: 7}]", "row 1 of families: a word is no text");
}

}  // namespace
}  // namespace llmprof
