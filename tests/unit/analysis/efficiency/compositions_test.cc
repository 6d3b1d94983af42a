// SPDX-License-Identifier: Apache-2.0
#include "analysis/efficiency/compositions.h"

#include "analysis/analysis.h"
#include "analysis/efficiency/efficiency.h"
#include "config/presets.h"
#include "model/llm_goldens.h"
#include "testing.h"

namespace gpuwhy {
namespace {

// Decode steps of n sequences with `keys` tokens of context in all.
StageStep decode_step(std::int64_t n, std::int64_t keys, std::optional<std::int64_t> period_ns) {
  StageStep step;
  step.is_step = true;
  step.tokens = n;
  step.sequences = n;
  step.counts = {{0, 0, 0, 0, 0}, {n, n, keys, n, keys}};
  step.period_ns = period_ns;
  return step;
}

Analysis analysis_of(std::vector<StageStep> steps) {
  Analysis analysis;
  analysis.stages.emplace_back().stage = row_name("decode");
  analysis.stages.emplace_back().stage = row_name("draft");
  analysis.stage_steps = std::move(steps);
  return analysis;
}

TEST(Compositions, StepsAreGroupedUpToPowersOfTwo) {
  const Analysis analysis =
      analysis_of({decode_step(1, 100, 10), decode_step(2, 400, 20), decode_step(3, 900, 30),
                   decode_step(4, 800, 50), decode_step(5, 500, std::nullopt)});
  std::vector<std::string> found;
  for (const Composition& row : find_compositions(analysis, nullptr)) {
    found.push_back(row.sequences() + "|" + std::to_string(row.num_steps) + "|" +
                    std::to_string(*row.tokens) + "|" +
                    std::to_string(static_cast<int>(*row.mean_context)) + "|" +
                    (row.period_median_ns ? std::to_string(*row.period_median_ns) : "-"));
    EXPECT_FALSE(row.mfu_fraction || row.mbu_fraction) << "no model was named";
  }
  // Three and four sequences: (900 + 800) / (3 + 4) tokens each.
  EXPECT_THAT(found,
              ElementsAre("1|1|1|100|10", "2|1|2|200|20", "3 to 4|2|7|242|30", "5 to 8|1|5|100|-"));
}

TEST(Compositions, WhatOneStepDoesNotTellIsUnknownOfTheRow) {
  StageStep bare = decode_step(3, 0, 10);
  bare.counts = {};
  bare.tokens = std::nullopt;
  StageStep unknown;
  unknown.is_step = true;  // how many sequences, nobody says
  const auto rows =
      find_compositions(analysis_of({decode_step(4, 400, 10), bare, unknown}), nullptr);
  ASSERT_EQ(rows.size(), 1U);
  EXPECT_EQ(rows[0].num_steps, 2);
  EXPECT_FALSE(rows[0].tokens);
  EXPECT_FALSE(rows[0].mean_context);
}

// Two steps of 8 sequences; the last has no period, and enters no ratio.
TEST(Compositions, RatiosAreOverPeriods) {
  StageStep draft = decode_step(8, 8000, 1'000'000);
  draft.stage = 1;
  Analysis analysis =
      analysis_of({decode_step(8, 8000, 10'000'000), decode_step(8, 8008, std::nullopt), draft});
  EfficiencySetup setup;
  setup.llm = golden_llm("Llama-3.1-8B");
  setup.gpu = find_gpu(gpu_table(embedded_yaml("hardware/gpus.yaml")), "H100-SXM5-80GB");
  analysis.efficiency.emplace();
  analysis.efficiency->gpu = setup.gpu.gpu->name;
  analysis.efficiency->num_gpus = 2;
  const auto rows = find_compositions(analysis, &setup);
  ASSERT_EQ(rows.size(), 2U);
  const LlmCost cost = cost_of(setup.llm, decode_work(1000, 8));
  EXPECT_NEAR(*rows[0].mbu_fraction,
              static_cast<double>(cost.total_bytes()) / setup.gpu.gpu->bytes_per_s() / 2 / 0.01,
              1e-9);
  EXPECT_NEAR(
      *rows[0].mfu_fraction,
      static_cast<double>(cost.total_flops()) / *setup.gpu.gpu->flops_per_s("bf16") / 2 / 0.01,
      1e-9);
  EXPECT_FALSE(rows[1].mfu_fraction) << "a draft model is another one";
}

}  // namespace
}  // namespace gpuwhy
