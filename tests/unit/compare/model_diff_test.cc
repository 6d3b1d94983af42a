// SPDX-License-Identifier: Apache-2.0

#include "compare/compare.h"
#include "testing.h"

namespace gpuwhy {
namespace {

PassRow pass_row(const std::string& pass, bool is_backward, std::int64_t num_layers,
                 std::int64_t num_passes, std::int64_t kernel_ns) {
  PassRow row;
  row.pass = pass;
  row.is_backward = is_backward;
  row.num_layers = num_layers;
  row.num_passes = num_passes;
  row.kernel_ns = kernel_ns;
  return row;
}

struct Part {
  std::string pass;
  std::string place;
  std::string part;
  std::string kernel;
  std::int64_t total_ns = 0;
};

RunSummary run_of(std::int64_t num_layers, std::int64_t num_passes, const std::vector<Part>& parts,
                  std::int64_t kernel_ns) {
  RunSummary run;
  run.label = "run";
  run.passes = {pass_row("forward", false, num_layers, num_passes, kernel_ns)};
  for (const Part& part : parts) {
    LayerPartRow& row = run.parts.emplace_back();
    row.pass = part.pass;
    row.place = part.place + " 1";
    row.part = part.part;
    row.short_name = part.kernel;
    row.total_ns = part.total_ns;
  }
  return run;
}

TEST(CompareModel, TakesPartsTogetherWhateverTheirKernelsAreCalled) {
  const RunSummary base = run_of(2, 10,
                                 {{"forward", "prologue", "embedding", "gather", 100},
                                  {"forward", "layer", "qkv", "ampere_gemm", 4000},
                                  {"forward", "layer", "copy", "copy_a", 500},
                                  {"forward", "layer", "attention", "flash_fwd", 9000},
                                  {"forward", "layer", "copy", "copy_b", 700}},
                                 15'000);
  const RunSummary candidate = run_of(2, 5,
                                      {{"forward", "prologue", "embedding", "gather", 50},
                                       {"forward", "layer", "qkv", "nvjet", 1000},
                                       {"forward", "layer", "attention", "fmha_v3", 5000},
                                       {"forward", "layer", "rope", "rope", 75}},
                                      6125);
  const ModelComparison model = model_changes(base, candidate);
  EXPECT_EQ(model.missing, "");
  ASSERT_EQ(model.passes.size(), 1U);
  const ModelPassChange& pass = model.passes[0];
  EXPECT_EQ(pass.num_layers, 2);
  EXPECT_EQ(pass.base_ns, 1500);
  EXPECT_EQ(pass.candidate_ns, 1225);
  ASSERT_EQ(pass.parts.size(), 6U);
  EXPECT_EQ(pass.parts[0].part, "qkv");  // the largest difference first
  EXPECT_EQ(pass.parts[0].base_kernel, "ampere_gemm");
  EXPECT_EQ(pass.parts[0].candidate_kernel, "nvjet");
  EXPECT_EQ(pass.parts[0].base_ns, 400);
  EXPECT_EQ(pass.parts[0].candidate_ns, 200);
  EXPECT_EQ(pass.parts[1].part, "copy");
  EXPECT_EQ(pass.parts[1].base_ns, 120);
  EXPECT_EQ(pass.parts[1].base_kernel, "copy_b");
  EXPECT_EQ(pass.parts[1].candidate_kernel, "");
  EXPECT_EQ(pass.parts[2].part, "attention");
  EXPECT_EQ(pass.parts[2].difference_ns(), 100);
  EXPECT_EQ(pass.parts[3].part, "") << "stray kernels of the base";
  EXPECT_EQ(pass.parts[3].base_ns, 70);
  EXPECT_EQ(pass.parts[5].part, "embedding");
  EXPECT_EQ(pass.parts[5].difference_ns(), 0);
}

TEST(CompareModel, SaysWhyItIsMissing) {
  const RunSummary base = run_of(24, 1, {}, 10);
  EXPECT_THAT(model_changes(base, run_of(36, 1, {}, 10)).missing,
              HasSubstr("the base has 24 layers, the candidate 36"));
  EXPECT_THAT(model_changes(base, RunSummary()).missing, HasSubstr("in the candidate"));
  EXPECT_THAT(model_changes(RunSummary(), base).missing, HasSubstr("in the base"));
  EXPECT_THAT(model_changes(RunSummary(), RunSummary()).missing, HasSubstr("either run"));
}

TEST(CompareModel, MatchesPassesByLayersAndDirection) {
  RunSummary base = run_of(12, 1, {}, 10);
  base.passes.push_back(pass_row("backward", true, 12, 1, 20));
  RunSummary candidate;
  candidate.passes = {pass_row("forward 1", false, 24, 1, 5),
                      pass_row("forward 2", false, 12, 1, 11),
                      pass_row("backward", true, 12, 1, 22)};
  const ModelComparison model = model_changes(base, candidate);
  ASSERT_EQ(model.passes.size(), 2U);
  EXPECT_EQ(model.passes[0].candidate_ns, 11);
  EXPECT_EQ(model.passes[1].candidate_ns, 22);
}

}  // namespace
}  // namespace gpuwhy
