// SPDX-License-Identifier: Apache-2.0
#include "session/reading/model_target.h"

#include "analysis/profile.h"
#include "base/file.h"
#include "base/json.h"
#include "base/sha256.h"
#include "config/compose.h"
#include "temporary.h"
#include "testing.h"

namespace gpuwhy {
namespace {

TEST(Target, PlaceholdersAreFilledOnceAndOtherBracesStay) {
  EXPECT_THAT(filled({"--model={model}", "{out}/{out}", "{\"a\":{}}", "{", "{model", "{other}"},
                     {{"model", "a {out} b"}, {"out", "/x"}}),
              ElementsAre("--model=a {out} b", "/x//x", "{\"a\":{}}", "{", "{model", "{other}"));
}

TEST(Target, NamesItsCommandAndMakesItsFileOnce) {
  const TemporaryDirectory folder;
  const std::string program = folder.add_script("llama_runner", "").string();
  const System system{{{"PATH", folder.path().string()}}};
  const std::string file = (folder.path() / "tiny.gguf").string();
  const Config config = compose(std::nullopt, {"model.target=llama_tiny", "model.config=" + file});
  const TargetWorkload target = target_workload_of(config, system, false);
  EXPECT_EQ(target.command.at(0), program);
  EXPECT_EQ(target.model_file, file);
  EXPECT_TRUE(target.needs_preparation());
  EXPECT_THAT(filled(target.prepare, {{"model", file}}),
              ElementsAre(program, "--make-model", "llama_tiny", file));
  write_file(file, "");
  EXPECT_FALSE(target.needs_preparation());
}

TEST(Target, AProgramThatIsNowhereIsToldBeforeAnythingStarts) {
  const System system{{{"PATH", "/nowhere"}}};
  const TemporaryDirectory folder;
  const std::string file = (folder.path() / "tiny.gguf").string();
  write_file(file, "");
  const Config config = compose(std::nullopt, {"model.target=llama_tiny", "model.config=" + file,
                                               "model.workload.command=[no-such-runner]"});
  expect_error([&] { target_workload_of(config, system, false); }, ErrorKind::kUsage,
               HasSubstr("model.target=llama_tiny runs 'no-such-runner'"), HasSubstr("--"));
  EXPECT_NO_THROW(target_workload_of(config, system, true)) << "the user's own runs instead";
}

TEST(Target, WhoeverLacksTheProgramIsToldWhatTheModelNeeds) {
  const System system{{{"PATH", "/nowhere"}}};
  for (const auto& [target, needs] :
       {std::pair("deepseek_ocr", "vLLM 0.12 or later (pip install vllm)"),
        std::pair("llama_tiny", "docs/quickstart-llm.md")}) {
    const Config config = compose(std::nullopt, {std::string("model.target=") + target,
                                                 "model.workload.command=[no-such-program]"});
    expect_error(
        [&] { target_workload_of(config, system, false); }, ErrorKind::kUsage,
        HasSubstr("'no-such-program'"),
        AllOf(HasSubstr(needs), HasSubstr(std::string("model.target=") + target + " -- PROGRAM")));
  }
}

TEST(Target, AMissingFileThatNothingMakesIsRefused) {
  const Config config = compose(std::nullopt, {"model.config=/nowhere/model.gguf"});
  expect_error([&] { target_workload_of(config, System{}, true); }, ErrorKind::kUsage,
               HasSubstr("there is no /nowhere/model.gguf"), HasSubstr(".gguf"));
}

TEST(Target, FactsOfTheModelAreCountedNotCopied) {
  const TemporaryDirectory folder;
  const std::string file = (folder.path() / "config.json").string();
  const Config named = compose(std::nullopt, {"model.target=llama_3_1_8b", "model.params=5"});
  const auto model = target_model(named);
  ASSERT_TRUE(model);
  const Json facts = target_json(named, model);
  EXPECT_EQ(facts.at("name"), "Llama-3.1-8B");
  EXPECT_EQ(facts.at("params"), 8030261248);
  EXPECT_FALSE(facts.contains("sha256"));

  write_file(file, to_json_text(*find_value(*named.tree, "model.config")));
  const Config by_path = compose(std::nullopt, {"model.target=mine", "model.config=" + file});
  const auto read = target_model(by_path);
  ASSERT_TRUE(read);
  EXPECT_EQ(read->name, "mine");
  const Json of_file = target_json(by_path, read);
  EXPECT_EQ(of_file.at("params"), 8030261248);
  EXPECT_EQ(of_file.at("file_bytes"), std::filesystem::file_size(file));
  EXPECT_EQ(of_file.at("sha256"), sha256_of_file(file));

  const Config nothing = compose(std::nullopt, {});
  EXPECT_FALSE(target_model(nothing));
  EXPECT_TRUE(target_json(nothing, std::nullopt).is_null());
}

TEST(Target, WithoutAGpuCostsAreThereAndRatiosAreNot) {
  Analysis analysis;
  StageRow& prefill = analysis.stages.emplace_back();
  prefill.stage = row_name("prefill");
  prefill.num_instances = 1;
  prefill.total_ns = 1000;
  StageStep step;
  step.duration_ns = 1000;
  step.is_step = true;
  step.tokens = 16;
  analysis.stage_steps = {step};
  const auto model = target_model(compose(std::nullopt, {"model.target=llama_3_1_8b"}));
  ASSERT_TRUE(model);
  const auto efficiency_on = [&](const std::string& machine_gpu) {
    Profile profile;
    profile.analysis = analysis;
    Besides evidence;
    evidence.model = EfficiencySetup();
    evidence.model->llm = model->llm;
    evidence.model->gpu.reason = machine_gpu.empty() ? "no_gpu" : "";
    evidence.machine_gpu = machine_gpu;
    evidence.gpus = known_gpus;
    complete(profile, std::move(evidence));
    return profile.analysis.efficiency.value();
  };
  const Efficiency efficiency = efficiency_on("");
  EXPECT_EQ(efficiency.reason, "no_gpu");
  ASSERT_EQ(efficiency.stages.size(), 1U);
  EXPECT_EQ(efficiency.stages[0].flops, cost_of(model->llm, prefill_work(16)).total_flops());
  EXPECT_FALSE(efficiency.stages[0].mfu.wall_fraction);
  EXPECT_TRUE(efficiency_on("NVIDIA H100 80GB HBM3").stages.at(0).mfu.wall_fraction.has_value());
}

}  // namespace
}  // namespace gpuwhy
