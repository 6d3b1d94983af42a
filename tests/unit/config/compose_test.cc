// SPDX-License-Identifier: Apache-2.0
#include "config/compose.h"

#include "base/json.h"
#include "temporary.h"
#include "testing.h"

namespace gpuwhy {
namespace {

std::string value_at(const Config& config, const std::string& path) {
  const Json* value = find_value(*config.tree, path);
  return value == nullptr ? "absent" : to_json_line(*value);
}

TEST(Compose, DefaultsHaveTheKeysOfARun) {
  const Config config = compose(std::nullopt, {});
  EXPECT_EQ(value_at(config, "run.mode"), "\"deep\"");
  EXPECT_EQ(value_at(config, "run.top_n_kernels"), "20");
  EXPECT_EQ(value_at(config, "artifacts.dir"), "\"gpuwhy-runs\"");
  EXPECT_EQ(value_at(config, "pipeline.nsys.enable"), "true");
  EXPECT_EQ(value_at(config, "pipeline.ncu.enable"), "true");
  EXPECT_EQ(value_at(config, "model.target"), "null");
  EXPECT_EQ(value_at(config, "inputs.manifest"), "null");
  EXPECT_EQ(value_at(config, "defaults"), "absent");
  EXPECT_EQ(value_at(config, "modes"), "absent");
  EXPECT_THAT(config.notes, IsEmpty());
}

TEST(Compose, OldNameOfAKeyIsTakenWithANote) {
  for (const char* given : {"artifacts.stage2_dir=here", "artifacts={stage2_dir: here}"}) {
    const Config config = compose(std::nullopt, {given});
    EXPECT_EQ(value_at(config, "artifacts.dir"), "\"here\"") << given;
    EXPECT_EQ(value_at(config, "artifacts.stage2_dir"), "absent") << given;
    EXPECT_THAT(config.notes, testing::ElementsAre(HasSubstr("artifacts.dir"))) << given;
  }
}

TEST(Compose, EveryLeafHasAnOrigin) {
  const Config config = compose(std::nullopt, {"+extra.deep.key=1", "run.mode=light"});
  std::vector<std::string> leaves;
  const std::function<void(const Json&, const std::string&)> walk = [&](const Json& tree,
                                                                        const std::string& path) {
    for (const auto& [key, value] : tree.items()) {
      const std::string here = path.empty() ? key : path + "." + key;
      if (value.is_object() && !value.empty()) {
        walk(value, here);
      } else {
        leaves.push_back(here);
      }
    }
  };
  walk(*config.tree, "");
  ASSERT_EQ(leaves.size(), config.origins.size());
  for (const std::string& leaf : leaves) {
    EXPECT_TRUE(config.origins.contains(leaf)) << leaf;
  }
}

TEST(Compose, LaterLayersWin) {
  const TemporaryDirectory directory;
  const auto file = directory.add("user.yaml",
                                  "run: {top_n_kernels: 7}\n"
                                  "pipeline: {nsys: {sample: cpu}}\n");
  const Config config = compose(file, {"run.top_n_kernels=5"});
  EXPECT_EQ(value_at(config, "run.top_n_kernels"), "5");
  EXPECT_EQ(config.origins.at("run.top_n_kernels"), "override run.top_n_kernels=5");
  EXPECT_EQ(value_at(config, "pipeline.nsys.sample"), "\"cpu\"");
  EXPECT_EQ(config.origins.at("pipeline.nsys.sample"), file.string());
  EXPECT_EQ(config.origins.at("pipeline.nsys.cpuctxsw"), "profiling/nsys/default.yaml");
  EXPECT_EQ(value_at(compose(std::nullopt, {"run.mode=light", "run.mode=deep"}), "run.mode"),
            "\"deep\"");
}

TEST(Compose, ModeChoosesPresetsAndAChoiceBeatsIt) {
  const Config light = compose(std::nullopt, {"run.mode=light"});
  EXPECT_EQ(light.origins.at("pipeline.ncu.sections"), "profiling/ncu/light.yaml (run.mode=light)");
  const Config mixed = compose(std::nullopt, {"run.mode=light", "profiling/ncu=deep"});
  EXPECT_EQ(mixed.origins.at("pipeline.ncu.sections"), "profiling/ncu/deep.yaml");
  EXPECT_EQ(value_at(mixed, "pipeline.ncu.set"), "\"full\"");
  EXPECT_EQ(value_at(mixed, "pipeline.nsys.trace"), R"(["cuda","nvtx"])");
  const TemporaryDirectory directory;
  const auto file = directory.add("user.yaml", "run: {mode: light}\n");
  EXPECT_EQ(value_at(compose(file, {}), "pipeline.nsys.trace"), R"(["cuda","nvtx"])");
}

TEST(Compose, PresetsMayBeFilesOfTheUser) {
  const TemporaryDirectory directory;
  const auto model = directory.add("my_model.yaml", "name: Mine\nparams: 12\ndtype: fp8\n");
  const Config config = compose(std::nullopt, {"model/llm=" + model.string()});
  EXPECT_EQ(value_at(config, "model.name"), "\"Mine\"");
  EXPECT_EQ(config.origins.at("model.name"), model.string());
  const auto file = directory.add("user.yaml", "defaults:\n  - profiling/ncu: light\n");
  EXPECT_EQ(compose(file, {}).origins.at("pipeline.ncu.sections"), "profiling/ncu/light.yaml");
}

TEST(Compose, ATargetOfTheUserMayPointToItsFileAndSayHowItIsRun) {
  const TemporaryDirectory directory;
  const auto model = directory.add("mine.yaml",
                                   "name: Mine\nconfig: /models/mine.gguf\nworkload:\n"
                                   "  command: [runner, '{model}']\n");
  const Config config = compose(std::nullopt, {"model/llm=" + model.string()});
  EXPECT_EQ(value_at(config, "model.config"), "\"/models/mine.gguf\"");
  EXPECT_EQ(value_at(config, "model.workload.command"), "[\"runner\",\"{model}\"]");
  EXPECT_EQ(value_at(config, "model.workload.operators"), "[]") << "of the runner file";
}

TEST(Compose, TargetTakesItsPreset) {
  const Config config = compose(std::nullopt, {"model.target=deepseek_ocr"});
  EXPECT_EQ(value_at(config, "model.params"), "3336106240");
  EXPECT_THAT(config.notes, IsEmpty());
  const Config unknown = compose(std::nullopt, {"+model.target=x"});
  EXPECT_EQ(value_at(unknown, "model.target"), "\"x\"");
  EXPECT_THAT(unknown.notes, Contains(HasSubstr("not a preset of model/llm")));
}

TEST(Compose, UnknownKeysNameTheNearest) {
  expect_error([] { compose(std::nullopt, {"run.mdoe=light"}); }, ErrorKind::kUsage,
               "unknown key 'run.mdoe'", "did you mean 'run.mode'?");
  expect_error([] { compose(std::nullopt, {"~run.mdoe"}); }, ErrorKind::kUsage,
               "unknown key 'run.mdoe'", "did you mean 'run.mode'?");
  expect_error([] { compose(std::nullopt, {"pipeline.nsys={smaple: none}"}); }, ErrorKind::kUsage,
               "unknown key 'pipeline.nsys.smaple'", "did you mean 'pipeline.nsys.sample'?");
  expect_error([] { compose(std::nullopt, {"profiling/nuc=light"}); }, ErrorKind::kUsage,
               HasSubstr("no preset group"), "did you mean 'profiling/ncu'?");
  expect_error([] { compose(std::nullopt, {"profiling/ncu=lihgt"}); }, ErrorKind::kUsage,
               HasSubstr("has no preset 'lihgt'"), HasSubstr("did you mean 'light'?"));
  const TemporaryDirectory directory;
  const auto file = directory.add("user.yaml", "run:\n  mdoe: light\n");
  expect_error([&] { compose(file, {}); }, ErrorKind::kUsage, HasSubstr("user.yaml"),
               "did you mean 'run.mode'?");
}

TEST(Compose, NewKeysNeedAPlus) {
  const Config config = compose(std::nullopt, {"+extra.note=warm"});
  EXPECT_EQ(value_at(config, "extra.note"), "\"warm\"");
  EXPECT_THAT(config.notes, IsEmpty());
  EXPECT_THAT(compose(std::nullopt, {"+run.mdoe=light"}).notes,
              Contains(HasSubstr("if 'run.mode' was meant")));
  EXPECT_EQ(value_at(compose(std::nullopt, {"+run.mode=light"}), "run.mode"), "\"light\"");
}

TEST(Compose, AddedKeysAreKnownFromThenOn) {
  EXPECT_EQ(value_at(compose(std::nullopt, {"+a.b=2", "+a.b=3", "a.b=4"}), "a.b"), "4");
  EXPECT_EQ(value_at(compose(std::nullopt, {"inputs.manifest={a: 1}"}), "inputs.manifest.a"), "1");
}

TEST(Compose, AMappingChoosesPresetsToo) {
  EXPECT_EQ(value_at(compose(std::nullopt, {"run={mode: light}"}), "pipeline.nsys.trace"),
            R"(["cuda","nvtx"])");
  EXPECT_EQ(value_at(compose(std::nullopt, {"model={target: deepseek_ocr}"}), "model.params"),
            "3336106240");
}

TEST(Compose, ADotInAFilesKeyIsRefused) {
  const TemporaryDirectory directory;
  const auto file = directory.add("user.yaml", "run.mode: light\n");
  expect_error([&] { compose(file, {}); }, ErrorKind::kUsage, HasSubstr("key 'run.mode' has a dot"),
               HasSubstr("nested"));
}

TEST(Compose, PresetsOfTheUserAreChecked) {
  const TemporaryDirectory directory;
  const auto with = [&](const char* text) {
    const auto file = directory.add("ncu.yaml", text);
    return [file] { compose(std::nullopt, {"profiling/ncu=" + file.string()}); };
  };
  expect_error(with("[a, b]\n"), ErrorKind::kUsage, HasSubstr("not a mapping"), _);
  expect_error(with("secions: [x]\n"), ErrorKind::kUsage, HasSubstr("unknown key 'secions'"),
               "did you mean 'sections'?");
  expect_error(with("enable: 5\n"), ErrorKind::kUsage, HasSubstr("takes true or false"), _);
}

TEST(Compose, TypesAreTakenFromThePresets) {
  expect_error([] { compose(std::nullopt, {"run.top_n_kernels=many"}); }, ErrorKind::kUsage,
               "run.top_n_kernels takes a whole number, not \"many\"", "its value is 20");
  expect_error([] { compose(std::nullopt, {"pipeline.nsys.trace=cuda"}); }, ErrorKind::kUsage,
               HasSubstr("takes a list"), _);
  expect_error([] { compose(std::nullopt, {"pipeline.nsys=1"}); }, ErrorKind::kUsage,
               HasSubstr("takes a mapping"), _);
  expect_error([] { compose(std::nullopt, {"+run.mode=5"}); }, ErrorKind::kUsage,
               HasSubstr("takes a text"), _);
  expect_error([] { compose(std::nullopt, {"run.mode.deeper=5"}); }, ErrorKind::kUsage, _, _);
}

TEST(Compose, RemovedKeysAreGone) {
  const Config config = compose(std::nullopt, {"~pipeline.nsys.sample"});
  EXPECT_EQ(value_at(config, "pipeline.nsys.sample"), "absent");
  EXPECT_FALSE(config.origins.contains("pipeline.nsys.sample"));
  EXPECT_EQ(value_at(compose(std::nullopt, {"~profiling/ncu"}), "pipeline.ncu"), "absent");
}

TEST(Compose, AFileThatIsNoMappingIsRefused) {
  const TemporaryDirectory directory;
  const auto file = directory.add("user.yaml", "- a\n- b\n");
  expect_error([&] { compose(file, {}); }, ErrorKind::kUsage, HasSubstr("not a mapping"), _);
  const auto bad = directory.add("bad.yaml", "defaults: [light]\n");
  expect_error([&] { compose(bad, {}); }, ErrorKind::kUsage, HasSubstr("defaults"), _);
  EXPECT_EQ(value_at(compose(directory.add("empty.yaml", ""), {}), "run.mode"), "\"deep\"");
}

}  // namespace
}  // namespace gpuwhy
