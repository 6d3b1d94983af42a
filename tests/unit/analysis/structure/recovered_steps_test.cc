// SPDX-License-Identifier: Apache-2.0
#include "analysis/structure/recovered_steps.h"

#include "analysis/model_trace.h"
#include "analysis/names/rules_json.h"
#include "analysis/structure/structure_summary.h"
#include "config/presets.h"
#include "testing.h"

namespace gpuwhy {
namespace {

struct Recovered {
  std::string kinds;  // of passes in order: "p", "d", "-"
  StructureSummary summary;
  const RecoveredSteps& steps() const { return *summary.recovered; }
};

Recovered recover(const ModelTraceOptions& options, std::uint32_t seed = 1) {
  const Rules rules =
      rules_from(embedded_yaml("rules/kernels.yaml"), embedded_yaml("rules/stages.yaml"));
  std::mt19937 random(seed);
  const ModelTrace made = make_model_trace(options, random);
  Structure structure = find_structure(made.trace, {made.trace, rules});
  Recovered result;
  result.summary = summarise_structure(made.trace, {made.trace, rules}, structure);
  recover_steps(made.trace, structure, result.summary);
  for (const KernelStream& stream : structure.streams) {
    for (const ModelPass& pass : stream.passes) {
      const std::string_view text = text_of(pass.work);
      result.kinds += text.empty() ? '-' : text.front();
    }
  }
  return result;
}

ModelTraceOptions generation() {
  ModelTraceOptions options;
  options.num_passes = 12;
  options.prefill_every = 6;
  options.num_sequences = 8;
  options.prefill_attention = "flash_fwd_kernel";
  options.decode_attention = "flash_fwd_splitkv_kernel";
  return options;
}

TEST(RecoveredSteps, PrefillAndDecodeByTheirAttention) {
  const Recovered found = recover(generation());
  EXPECT_EQ(found.kinds, "pdddddpddddd");
  EXPECT_EQ(found.steps().num_prefill, 2);
  EXPECT_EQ(found.steps().num_decode, 10);
  EXPECT_EQ(found.steps().signs.size(), 2U);
  EXPECT_EQ(found.steps().reason, "");
}

TEST(RecoveredSteps, TimesAreThoseOfPasses) {
  Recovered found = recover(generation());
  const RecoveredSteps& steps = found.steps();
  EXPECT_EQ(steps.ttft.n, 2);
  EXPECT_EQ(steps.tpot.n, 8);  // four between the decode passes after each prefill
  ASSERT_TRUE(steps.ttft.p50_ns && steps.tpot.p50_ns);
  EXPECT_GT(*steps.ttft.p50_ns, 6 * *steps.tpot.p50_ns);
  EXPECT_TRUE(steps.tpot.basis.starts_with("recovered from the order of kernels"));
  EXPECT_FALSE(steps.decode_tokens_per_s);
  add_recovered_rate(8, found.summary);
  ASSERT_TRUE(steps.decode_tokens_per_s);
  EXPECT_DOUBLE_EQ(*steps.decode_tokens_per_s, 8e9 / *steps.tpot.mean_ns);
}

TEST(RecoveredSteps, PrefillAndDecodeByGridsAlone) {
  ModelTraceOptions options = generation();
  options.prefill_attention = options.decode_attention = "";
  EXPECT_EQ(recover(options).kinds, "pdddddpddddd");
  options.num_sequences = 64;  // could be prompts of 64 tokens
  EXPECT_EQ(recover(options).kinds, "------------");
  options.num_sequences = 0;  // no grids at all: a long pass may be a slow one
  EXPECT_EQ(recover(options).kinds, "------------");
}

TEST(RecoveredSteps, PromptsByTheirName) {
  ModelTraceOptions options = generation();
  options.num_sequences = 0;
  options.prefill_attention = "flash_fwd_prefill_kernel";
  options.decode_attention = "";
  EXPECT_EQ(recover(options).kinds, "pdddddpddddd");
}

TEST(RecoveredSteps, DecodeOnly) {
  ModelTraceOptions options = generation();
  options.prefill_every = 0;
  options.num_passes = 6;
  const Recovered found = recover(options);
  EXPECT_EQ(found.kinds, "dddddd");
  EXPECT_EQ(found.summary.passes[0].kind, "decode");
  EXPECT_EQ(found.steps().ttft.n, 0);
  EXPECT_EQ(found.steps().ttft.reason, "no prefill pass");
  options.num_passes = 3;
  EXPECT_EQ(recover(options).kinds, "---");
}

TEST(RecoveredSteps, DecodeOnlyByVectorProducts) {
  ModelTraceOptions options;
  options.num_passes = 5;
  options.product_name = "gemv2T_kernel_val";
  const Recovered found = recover(options);
  EXPECT_EQ(found.kinds, "ddddd");
  EXPECT_EQ(found.steps().signs.size(), 2U);
}

// Engines use the same kernel for chunks of prompts: its grid tells.
TEST(RecoveredSteps, SplitAttentionOverManyQueriesIsNoDecode) {
  ModelTraceOptions options = generation();
  options.prefill_every = 0;
  options.tile_grid = 16;
  EXPECT_EQ(recover(options).kinds, "------------");
}

TEST(RecoveredSteps, AlikePassesWithoutASignAreNotTold) {
  ModelTraceOptions options;
  options.num_passes = 8;
  const Recovered found = recover(options);
  EXPECT_EQ(found.kinds, "--------");
  EXPECT_FALSE(found.steps().reason.empty());
  EXPECT_EQ(found.summary.passes[0].kind, "");
  EXPECT_EQ(found.summary.passes[0].kind_reason, found.steps().reason);
  EXPECT_TRUE(found.steps().signs.empty());
}

TEST(RecoveredSteps, TrainingIsNeverTold) {
  ModelTraceOptions options = generation();
  options.has_backward = true;
  const Recovered found = recover(options);
  EXPECT_EQ(found.kinds.find_first_not_of('-'), std::string::npos) << found.kinds;
  EXPECT_EQ(found.steps().reason, "backward passes: this is training");
}

TEST(RecoveredSteps, RowOrderDoesNotMatter) {
  for (std::uint32_t seed = 0; seed < 5; ++seed) {
    ModelTraceOptions options = generation();
    options.num_devices = 2;
    const Recovered plain = recover(options, seed);
    options.has_shuffled_rows = true;
    const Recovered shuffled = recover(options, seed);
    EXPECT_EQ(plain.kinds, shuffled.kinds);
    EXPECT_EQ(plain.steps().tpot.n, shuffled.steps().tpot.n);
    EXPECT_EQ(plain.steps().tpot.p50_ns, shuffled.steps().tpot.p50_ns);
    EXPECT_EQ(plain.steps().ttft.p99_ns, shuffled.steps().ttft.p99_ns);
    EXPECT_EQ(plain.steps().signs, shuffled.steps().signs);
  }
}

// What engines do, in all mixtures: a pass never gets the wrong kind.
TEST(RecoveredSteps, OfRandomModelsAreRightOrNotTold) {
  std::size_t num_told = 0;
  std::size_t num_all = 0;
  for (std::uint32_t seed = 0; seed < 60; ++seed) {
    std::mt19937 random(seed);
    ModelTraceOptions options = random_model(random);
    options.num_passes = 8 + static_cast<int>(seed % 5);
    options.prefill_every = static_cast<int>(seed % 3) * 5;
    options.num_sequences = static_cast<int>(seed % 4) * 12;
    options.decode_attention = seed % 2 == 0 ? "flash_fwd_splitkv_kernel" : "";
    options.num_devices = 1;
    const std::string kinds = recover(options, seed).kinds;
    for (std::size_t i = 0; i < kinds.size(); ++i) {
      const bool is_prefill = options.prefill_every > 0 && i % options.prefill_every == 0;
      if (kinds.size() == static_cast<std::size_t>(options.num_passes)) {
        EXPECT_NE(kinds[i], is_prefill ? 'd' : 'p') << "seed " << seed << ": " << kinds;
      }
      num_told += kinds[i] != '-' ? 1 : 0;
      ++num_all;
    }
  }
  EXPECT_GT(3 * num_told, num_all);
}

}  // namespace
}  // namespace gpuwhy
