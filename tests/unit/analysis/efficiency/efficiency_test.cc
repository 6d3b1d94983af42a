// SPDX-License-Identifier: Apache-2.0
#include "analysis/efficiency/efficiency.h"

#include <cmath>

#include "analysis/efficiency/step_fit.h"
#include "config/presets.h"
#include "model/llm_goldens.h"
#include "testing.h"

namespace gpuwhy {
namespace {

GpuMatch gpu(const std::string& name) {
  return find_gpu(gpu_table(embedded_yaml("hardware/gpus.yaml")), name);
}

// An analysis as analyze() leaves it: instances are laid end to end.
class Made {
 public:
  Made() {
    analysis_.devices = {{.device = "cuda:0",
                          .name = "NVIDIA GeForce RTX 5090",
                          .num_kernels = 1,
                          .num_sms = 170,
                          .busy_stage = {}}};
  }

  Made& add(const std::string& stage, std::int64_t duration_ns,
            std::optional<std::int64_t> tokens = std::nullopt,
            std::optional<std::int64_t> sequences = std::nullopt, bool is_step = true) {
    std::uint32_t index = 0;
    while (index < analysis_.stages.size() && analysis_.stages[index].stage.text() != stage) {
      ++index;
    }
    if (index == analysis_.stages.size()) {
      analysis_.stages.emplace_back().stage = row_name(stage);
    }
    analysis_.stages[index].total_ns += duration_ns;
    ++analysis_.stages[index].num_instances;
    StageStep& step = analysis_.stage_steps.emplace_back();
    step.stage = index;
    step.start_ns = now_ns_;
    step.duration_ns = duration_ns;
    step.is_step = is_step && stage != "prefill";
    step.tokens = tokens;
    step.sequences = sequences;
    now_ns_ += duration_ns;
    return *this;
  }
  Made& add_step(const std::string& stage, std::int64_t duration_ns, const StepCounts& counts) {
    add(stage, duration_ns, std::nullopt, counts.context.requests + counts.generation.requests);
    analysis_.stage_steps.back().counts = counts;
    return *this;
  }
  Made& busy(const std::string& stage, std::int64_t window_ns, std::int64_t compute_ns) {
    LedgerRow row{{}, row_name(stage), "cuda:0", 1};
    row.window_ns = window_ns;
    row.buckets_ns[static_cast<std::size_t>(Bucket::kCompute)] = compute_ns;
    analysis_.ledgers.push_back(row);
    return *this;
  }
  Analysis& analysis() { return analysis_; }

 private:
  Analysis analysis_;
  std::int64_t now_ns_ = 0;
};

EfficiencySetup setup_for(const std::string& model, const std::string& gpu_name = "RTX-5090") {
  EfficiencySetup setup;
  setup.model_name = model;
  setup.llm = golden_llm(model);
  setup.gpu = gpu(gpu_name);
  return setup;
}

const StageEfficiency& row(const Efficiency& efficiency, const std::string& stage) {
  for (const StageEfficiency& found : efficiency.stages) {
    if (found.stage.text() == stage) {
      return found;
    }
  }
  throw Error(ErrorKind::kFailure, "no row " + stage);
}

// A published run of DeepSeek-OCR on an RTX 5090: 64 tokens in 707.379 ms around a context of 850.
TEST(Efficiency, OfAnEagerRunIsThatOfAGpuThatWaits) {
  Made made;
  made.add("prefill", 60'000'000, 818);
  for (int i = 0; i < 64; ++i) {
    made.add("decode_step", 11'052'797, 1);
  }
  const Efficiency efficiency = efficiency_of(made.analysis(), setup_for("DeepSeek-OCR"));
  const StageEfficiency& decode = row(efficiency, "decode_step");
  EXPECT_EQ(decode.passes, 64);
  EXPECT_DOUBLE_EQ(decode.mean_context, 850.5);
  EXPECT_NEAR(decode.mfu.wall_fraction.value(), 0.000519, 0.000519 * 0.003);
  EXPECT_NEAR(decode.mbu.wall_fraction.value(), 0.0607, 0.0607 * 0.003);
  EXPECT_NEAR(*decode.bound_ns / 64 / 1e6, 0.670, 0.0005);
  EXPECT_NEAR(static_cast<double>(decode.wall_ns) / 64 / 1e6, 11.05, 0.005);
  EXPECT_EQ(decode.side, "memory");
  EXPECT_EQ(decode.verdict, "GPU mostly idle");
  EXPECT_THAT(efficiency.errors, IsEmpty());
}

// What is not priced is n/a with its reason, never a guess.
TEST(Efficiency, AModelThatContradictsTheKernelsIsNamed) {
  Analysis analysis;
  const auto add = [&](const char* name, const char* family, std::int64_t total_ns) {
    KernelRow kernel;
    kernel.kernel_name = kernel.short_name = name;
    kernel.family = family;
    kernel.calls = 200;
    kernel.total_ns = total_ns;
    analysis.kernels.push_back(kernel);
    analysis.capture.kernel_ns += total_ns;
  };
  Llm dense;
  Llm mixture;
  mixture.moe.emplace();
  add("gemm", "gemm", 900);
  EXPECT_EQ(model_mismatch(analysis, dense), "");
  EXPECT_EQ(model_mismatch(analysis, mixture), "") << "a loop over experts runs plain products";
  analysis.engine = "vLLM";
  EXPECT_THAT(model_mismatch(analysis, mixture), HasSubstr("vLLM ran no kernel of a mixture"));
  add("fused_moe_kernel", "moe", 100);
  EXPECT_EQ(model_mismatch(analysis, mixture), "");
  EXPECT_THAT(model_mismatch(analysis, dense),
              HasSubstr("10.0 % of its kernel time is kernels of a mixture of experts "
                        "(fused_moe_kernel)"));
}

TEST(Efficiency, OfAModelWithoutACostSaysWhy) {
  Made made;
  made.add("prefill", 60'000'000, 818).add("decode_step", 11'052'797, 1);
  EfficiencySetup setup = setup_for("Llama-3.1-8B");
  setup.llm = Llm{};
  setup.llm.no_cost_reason = "brand_new: a mixture of experts (num_experts) has no cost model";
  const Efficiency efficiency = efficiency_of(made.analysis(), setup);
  EXPECT_THAT(efficiency.reason, HasSubstr("no cost model"));
  EXPECT_THAT(row(efficiency, "decode_step").reason, HasSubstr("num_experts"));
  EXPECT_FALSE(row(efficiency, "decode_step").mfu.wall_fraction.has_value());
}

// The down projection of an MLP, 14336 x 4096, runs once in each of 32 layers with a row per token.
TEST(Efficiency, TokensThatTheMatrixProductsContradictAreRefused) {
  Made made;
  made.add("prefill", 60'000'000).add("decode", 50'000'000, std::nullopt, std::nullopt, false);
  made.analysis().operators.emplace().rates.rows = {
      {row_name("prefill"), 4096, 14336, 64, 64 * 7},
      {row_name("prefill"), 14336, 4096, 32, 32 * 512},
      {row_name("decode"), 14336, 4096, 32 * 40, 32 * 40 * 4}};
  EfficiencySetup setup = setup_for("Llama-3.1-8B");
  setup.prompt_tokens = 128;
  setup.batch = 4;
  setup.new_tokens = 41;  // the first came from prefill
  Efficiency right = efficiency_of(made.analysis(), setup);
  EXPECT_TRUE(row(right, "prefill").mfu.wall_fraction.has_value());
  EXPECT_TRUE(row(right, "decode").mfu.wall_fraction.has_value());
  setup.batch = 1;
  Efficiency wrong = efficiency_of(made.analysis(), setup);
  EXPECT_EQ(row(wrong, "prefill").reason,
            "the recording's matrix products have 512 rows per step, tokens given: 128");
  EXPECT_EQ(row(wrong, "decode").reason,
            "the recording's matrix products have 4 rows per step, tokens given: 1");
  EXPECT_FALSE(row(wrong, "prefill").mfu.wall_fraction.has_value());
  EXPECT_EQ(row(wrong, "prefill").flops, 0);
  setup.batch = 4;
  setup.new_tokens = 80;
  EXPECT_EQ(row(efficiency_of(made.analysis(), setup), "decode").reason,
            "the recording's matrix products show 40 steps, 80 given");
  // Silent where it is not sure: an engine pads the batches of its graphs.
  made.analysis().stages[0].num_graph_kernels = 1;
  setup.batch = 1;
  EXPECT_TRUE(row(efficiency_of(made.analysis(), setup), "prefill").mfu.wall_fraction.has_value());
}

TEST(Efficiency, AContextGrowsByAStepAndStartsAnewWithAPrefill) {
  Made made;
  made.add("prefill", 1000, 100).add("decode_step", 1000, 1).add("decode_step", 1000, 1);
  made.add("prefill", 1000, 300).add("decode_step", 1000, 1);
  const Llm llm = golden_llm("Llama-3.1-8B");
  const Efficiency efficiency = efficiency_of(made.analysis(), setup_for("Llama-3.1-8B"));
  std::int64_t expected = 0;
  for (const std::int64_t context : {101, 102, 301}) {
    expected += cost_of(llm, decode_work(context)).total_flops();
  }
  EXPECT_EQ(row(efficiency, "decode_step").flops, expected);
  EXPECT_EQ(row(efficiency, "prefill").flops, cost_of(llm, prefill_work(100)).total_flops() +
                                                  cost_of(llm, prefill_work(300)).total_flops());
}

TEST(Efficiency, APrefillMarkCarriesTheTokensOfItsBatch) {
  Made made;
  made.add("prefill", 1000, 400).add("decode_step", 1000, 4);
  const Llm llm = golden_llm("Llama-3.1-8B");
  const Efficiency efficiency = efficiency_of(made.analysis(), setup_for("Llama-3.1-8B"));
  EXPECT_EQ(row(efficiency, "prefill").flops, cost_of(llm, prefill_work(100, 4)).total_flops());
  EXPECT_EQ(row(efficiency, "decode_step").flops, cost_of(llm, decode_work(101, 4)).total_flops());
}

TEST(Efficiency, ALoopWithoutStepsIsTheSumOfThem) {
  Made made;
  made.add("prefill", 1000, 100).add("decode", 50'000, 40, std::nullopt, false);
  const Llm llm = golden_llm("Llama-3.1-8B");
  const Efficiency efficiency = efficiency_of(made.analysis(), setup_for("Llama-3.1-8B"));
  std::int64_t expected = 0;
  for (std::int64_t context = 101; context <= 140; ++context) {
    expected += cost_of(llm, decode_work(context)).total_flops();
  }
  EXPECT_EQ(row(efficiency, "decode").flops, expected);
  EXPECT_EQ(row(efficiency, "decode").passes, 40);
}

TEST(Efficiency, RequestsThatAreMixedNeedTheirContext) {
  Made made;
  made.add("prefill", 1000, 100, 1).add("prefill", 1000, 300, 1).add("decode", 1000, 2, 2);
  EfficiencySetup setup = setup_for("Llama-3.1-8B");
  EXPECT_THAT(row(efficiency_of(made.analysis(), setup), "decode").reason, HasSubstr("--context"));
  setup.context = 201;
  EXPECT_EQ(row(efficiency_of(made.analysis(), setup), "decode").flops,
            cost_of(setup.llm, decode_work(201, 2)).total_flops());
}

// Markers that tell the sums over their requests leave nothing to ask for.
TEST(Efficiency, StepsWhoseMarkersTellTheirSumsAreExact) {
  const PhaseCounts none = {0, 0, 0, 0, 0};
  const StepCounts mixed = {{9, 8155, 8430, 7475785, 7671310}, {37, 37, 34489, 37, 34489}};
  const StepCounts decode = {none, {32, 32, 55086, 32, 55086}};
  const StepCounts chunk = {{1, 2048, 6144, 2048 * 2048, 2048 * 6144}, none};
  const StepCounts verify = {none, {2, 6, 36, 18, 108}};
  Made made;
  made.add_step("mixed", 20'000'000, mixed).add_step("decode", 5'000'000, decode);
  made.add_step("prefill", 5'000'000, chunk).add_step("verify", 5'000'000, verify);
  const Efficiency efficiency =
      efficiency_of(made.analysis(), setup_for("Llama-3.1-8B", "H100-SXM5-80GB"));
  const Llm llm = golden_llm("Llama-3.1-8B");
  for (const auto& [stage, counts, tokens] :
       {std::tuple("mixed", mixed, 8192), std::tuple("decode", decode, 32),
        std::tuple("prefill", chunk, 2048), std::tuple("verify", verify, 6)}) {
    const StageEfficiency& found = row(efficiency, stage);
    EXPECT_EQ(found.reason, "") << stage;
    EXPECT_EQ(found.passes, 1) << stage;
    EXPECT_EQ(found.tokens, tokens) << stage;
    EXPECT_EQ(found.flops, cost_of(llm, counts).total_flops()) << stage;
    EXPECT_EQ(found.bytes, cost_of(llm, counts).total_bytes()) << stage;
    EXPECT_TRUE(found.mfu.wall_fraction && found.mbu.wall_fraction) << stage;
  }
  EXPECT_DOUBLE_EQ(row(efficiency, "decode").mean_context, 55086.0 / 32);
  EXPECT_DOUBLE_EQ(row(efficiency, "verify").mean_context, 18);
  EXPECT_EQ(row(efficiency, "mixed").mean_context, 0);
  EXPECT_THAT(efficiency.notes, IsEmpty());
}

TEST(Efficiency, AWindowAndSumsAreABoundAndSaidSo) {
  Made made;
  made.add_step("decode", 5'000'000, {{0, 0, 0, 0, 0}, {32, 32, 55086, 32, 55086}});
  const Efficiency efficiency = efficiency_of(made.analysis(), setup_for("gpt-oss-20b"));
  EXPECT_TRUE(row(efficiency, "decode").mfu.wall_fraction);
  EXPECT_THAT(efficiency.notes, testing::Contains(HasSubstr("counted as full windows")));
}

TEST(Efficiency, StepsWithoutSumsSayWhatWouldTell) {
  Made made;
  made.add("mixed", 1000, 2112, 66).add("verify", 1000, 256, 64);
  const Efficiency efficiency = efficiency_of(made.analysis(), setup_for("Llama-3.1-8B"));
  EXPECT_THAT(row(efficiency, "mixed").reason, HasSubstr("detailed annotations"));
  EXPECT_THAT(row(efficiency, "verify").reason, HasSubstr("detailed annotations"));
}

// A user's number overrides that of a marker.
TEST(Efficiency, AGivenContextComesBeforeTheMarkers) {
  Made made;
  made.add_step("decode", 5'000'000, {{0, 0, 0, 0, 0}, {2, 2, 4000, 2, 4000}});
  EfficiencySetup setup = setup_for("Llama-3.1-8B");
  setup.context = 100;
  setup.batch = 2;
  EXPECT_EQ(row(efficiency_of(made.analysis(), setup), "decode").flops,
            cost_of(golden_llm("Llama-3.1-8B"), decode_work(100, 2)).total_flops());
}

TEST(Efficiency, WhatNoMarkSaysMayBeGiven) {
  Made made;
  made.add("prefill", 1000).add("decode", 50'000, std::nullopt, std::nullopt, false);
  EfficiencySetup setup = setup_for("Llama-3.1-8B");
  const Efficiency without = efficiency_of(made.analysis(), setup);
  EXPECT_THAT(row(without, "prefill").reason, HasSubstr("--prompt-tokens"));
  EXPECT_THAT(row(without, "decode").reason, HasSubstr("--new-tokens"));
  EXPECT_FALSE(row(without, "decode").mfu.wall_fraction);
  setup.prompt_tokens = 70;
  setup.new_tokens = 9;
  const Efficiency with = efficiency_of(made.analysis(), setup);
  EXPECT_EQ(row(with, "prefill").flops, cost_of(setup.llm, prefill_work(70)).total_flops());
  EXPECT_EQ(row(with, "decode").passes, 9);
}

TEST(Efficiency, BothClocksAreThere) {
  Made made;
  made.add("prefill", 1'000'000'000, 2048).busy("prefill", 2'000'000'000, 500'000'000);
  const Efficiency efficiency = efficiency_of(made.analysis(), setup_for("Llama-3.1-8B"));
  const StageEfficiency& prefill = row(efficiency, "prefill");
  EXPECT_EQ(prefill.wall_ns, 2'000'000'000);  // to the end of its GPU work
  EXPECT_NEAR(prefill.mfu.wall_fraction.value(), 29'688'401'494'016 / 209.5e12 / 2, 1e-12);
  EXPECT_NEAR(prefill.mfu.busy_fraction.value(), 29'688'401'494'016 / 209.5e12 / 0.5, 1e-12);
  EXPECT_GT(prefill.hfu.wall_fraction.value(), prefill.mfu.wall_fraction.value());
  EXPECT_EQ(prefill.verdict, "GPU mostly idle");
}

TEST(Efficiency, AnUnknownGpuGivesCostsAndNoRatio) {
  Made made;
  made.add("prefill", 1000, 10);
  const Efficiency efficiency = efficiency_of(made.analysis(), setup_for("Llama-3.1-8B", "What"));
  EXPECT_THAT(efficiency.reason, HasSubstr("add a row"));
  EXPECT_GT(row(efficiency, "prefill").flops, 0);
  EXPECT_FALSE(row(efficiency, "prefill").mfu.wall_fraction);
  EXPECT_FALSE(row(efficiency, "prefill").sol.wall_fraction);
  EXPECT_FALSE(row(efficiency, "prefill").bound_ns);
}

TEST(Efficiency, ARatioAboveOneIsAnErrorAndNotClamped) {
  Made made;
  made.add("prefill", 1'000'000, 2048).add("decode_step", 100'000, 1);
  const Efficiency efficiency = efficiency_of(made.analysis(), setup_for("Llama-3.1-8B"));
  EXPECT_GT(row(efficiency, "prefill").mfu.wall_fraction.value(), 100);
  EXPECT_EQ(row(efficiency, "prefill").verdict, "faster than possible");
  ASSERT_FALSE(efficiency.errors.empty());
  EXPECT_THAT(efficiency.errors[0],
              testing::AllOf(HasSubstr("MFU"), HasSubstr("Llama-3.1-8B"), HasSubstr("RTX-5090"),
                             HasSubstr("2048 tokens")));
}

// gpt-oss-20b as llama.cpp runs it on a DGX Spark with 16 sequences: skewed routing.
TEST(Efficiency, SkewedRoutingIsANoteWithItsRange) {
  EfficiencySetup setup = setup_for("gpt-oss-20b", "GB10-DGX-Spark");
  setup.llm.width(LlmPart::kExperts) = {32, 17};
  Made made;
  made.add("prefill", 1'000'000'000'000, 512 * 16).add("decode", 36'657'000, 16);
  const Efficiency efficiency = efficiency_of(made.analysis(), setup);
  EXPECT_GT(row(efficiency, "decode").mbu.wall_fraction.value(), 1);
  EXPECT_THAT(efficiency.errors, IsEmpty());
  EXPECT_THAT(efficiency.notes, ElementsAre(HasSubstr("skewed")));
}

TEST(Efficiency, SeveralGpusShareTheWork) {
  Made made;
  made.add("prefill", 1'000'000'000, 2048);
  const double one = row(efficiency_of(made.analysis(), setup_for("Llama-3.1-8B")), "prefill")
                         .mfu.wall_fraction.value();
  made.analysis().devices.push_back({.device = "cuda:1",
                                     .name = "NVIDIA GeForce RTX 5090",
                                     .num_kernels = 1,
                                     .num_sms = 170,
                                     .busy_stage = {}});
  const Efficiency two = efficiency_of(made.analysis(), setup_for("Llama-3.1-8B"));
  EXPECT_EQ(two.num_gpus, 2);
  EXPECT_DOUBLE_EQ(row(two, "prefill").mfu.wall_fraction.value(), one / 2);
}

TEST(Efficiency, OneRankOfManyMustSayHowTheyShareTheModel) {
  Made made;
  made.add("prefill", 1'000'000'000, 2048);
  EfficiencySetup setup = setup_for("Llama-3.1-8B");
  const double one =
      row(efficiency_of(made.analysis(), setup), "prefill").mfu.wall_fraction.value();
  made.analysis().capture.world_size = 8;
  const Efficiency unknown = efficiency_of(made.analysis(), setup);
  EXPECT_FALSE(row(unknown, "prefill").mfu.wall_fraction.has_value()) << "8 times too high";
  EXPECT_GT(row(unknown, "prefill").flops, 0);
  EXPECT_THAT(unknown.reason, testing::HasSubstr("1 of a job's 8 ranks"));
  setup.num_gpus = 8;
  EXPECT_DOUBLE_EQ(row(efficiency_of(made.analysis(), setup), "prefill").mfu.wall_fraction.value(),
                   one / 8);
}

TEST(Efficiency, AnImageAddsItsTowersFlopsToPrefillAndNoTime) {
  Made made;
  made.add("prefill", 1'000'000'000, 693);
  EfficiencySetup setup = setup_for("DeepSeek-OCR");
  const Efficiency without = efficiency_of(made.analysis(), setup);
  EXPECT_THAT(without.notes, ElementsAre(HasSubstr("--image")));
  setup.image = image_cost(*setup.llm.vision, {1024, 1024, 2, 2});
  const Efficiency with = efficiency_of(made.analysis(), setup);
  EXPECT_EQ(row(with, "prefill").flops - row(without, "prefill").flops, 2'692'566'384'640);
  EXPECT_EQ(row(with, "prefill").wall_ns, row(without, "prefill").wall_ns);
  EXPECT_THAT(with.notes, IsEmpty());
}

TEST(Efficiency, AbsurdTokenCountsAreAnErrorThatNamesTheStage) {
  Made made;
  made.add("prefill", 1000, INT64_MAX);
  expect_error([&] { efficiency_of(made.analysis(), setup_for("Llama-3.1-8B")); },
               ErrorKind::kInput, HasSubstr("while counting what stage prefill costs"),
               testing::A<const std::string&>());
  Made negative;
  negative.add("prefill", 1000, -5).add("decode_step", 10, -1);
  const Efficiency efficiency = efficiency_of(negative.analysis(), setup_for("Llama-3.1-8B"));
  EXPECT_THAT(row(efficiency, "prefill").reason, HasSubstr("prompt"));
  EXPECT_THAT(row(efficiency, "decode_step").reason, HasSubstr("tokens made"));
}

std::vector<StepSample> planted(int count, double fixed, double per_token, double per_kv) {
  std::vector<StepSample> steps;
  for (int i = 0; i < count; ++i) {
    const double tokens = 1 + i * 7 % 5;
    const double kv = 100 + 13 * (i % 17) + i;
    steps.push_back(
        {i * 1000, std::llround(fixed + per_token * tokens + per_kv * kv), tokens, kv, i});
  }
  return steps;
}

TEST(StepFit, FindsWhatWasPlanted) {
  std::string reason;
  const StepFit fit = fit_steps(planted(200, 5e6, 2e4, 310), reason).value();
  EXPECT_NEAR(fit.fixed_ns, 5e6, 50);
  EXPECT_NEAR(fit.per_token_ns.value(), 2e4, 5);
  EXPECT_NEAR(fit.per_kv_token_ns.value(), 310, 0.1);
  EXPECT_GT(fit.r_squared, 0.9999);
  EXPECT_EQ(fit.num_outliers, 0);
}

TEST(StepFit, SetsOutliersAsideAndListsThem) {
  std::vector<StepSample> steps = planted(200, 5e6, 2e4, 310);
  steps[50].duration_ns += 40'000'000;
  steps[120].duration_ns += 9'000'000;
  steps[0].duration_ns += 900'000'000;  // the first is left out
  std::string reason;
  const StepFit fit = fit_steps(steps, reason).value();
  EXPECT_NEAR(fit.fixed_ns, 5e6, 50);
  EXPECT_NEAR(fit.per_kv_token_ns.value(), 310, 0.1);
  ASSERT_EQ(fit.num_outliers, 2);
  EXPECT_EQ(fit.outliers[0].step, 50);
  EXPECT_EQ(fit.outliers[1].step, 120);
  EXPECT_NEAR(static_cast<double>(fit.outliers[0].measured_ns) - fit.outliers[0].fitted_ns, 4e7,
              100);
}

TEST(StepFit, AColumnThatDoesNotVaryStaysInTheFixedPart) {
  std::vector<StepSample> steps = planted(50, 5e6, 0, 310);
  for (StepSample& step : steps) {
    step.tokens = 4;
  }
  std::string reason;
  EXPECT_FALSE(fit_steps(steps, reason)->per_token_ns);
  for (StepSample& step : steps) {
    step.kv_tokens = 9;
    step.duration_ns = 1000;
  }
  const StepFit flat = fit_steps(steps, reason).value();
  EXPECT_FALSE(flat.per_kv_token_ns);
  EXPECT_NEAR(flat.fixed_ns, 1000, 1e-6);
}

TEST(StepFit, NeedsSteps) {
  std::string reason;
  EXPECT_FALSE(fit_steps(planted(8, 1, 1, 1), reason));
  EXPECT_THAT(reason, HasSubstr("has 8"));
}

}  // namespace
}  // namespace gpuwhy
