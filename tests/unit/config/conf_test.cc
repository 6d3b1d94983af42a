// SPDX-License-Identifier: Apache-2.0
//
// The files of conf/ themselves.
#include <set>

#include "base/yaml.h"
#include "config/compose.h"
#include "config/embedded.h"
#include "config/presets.h"
#include "model/llm_goldens.h"
#include "testing.h"

namespace gpuwhy {
namespace {

TEST(Conf, EveryFileParsesAndSaysWhatItIsFor) {
  ASSERT_GE(embedded_conf().size(), 10U);
  for (const EmbeddedFile& file : embedded_conf()) {
    EXPECT_TRUE(file.text.starts_with("# ")) << file.path;
    EXPECT_TRUE(parse_yaml(file.text, std::string(file.path)).is_object()) << file.path;
  }
}

TEST(Conf, PresetsOfAGroupShareTheirKeys) {
  for (const PresetGroup& group : runner_declaration().groups) {
    std::set<std::string> expected;
    for (const std::string& name : preset_names(group.name)) {
      std::set<std::string> keys;
      const Json preset = load_preset(group, name).values;
      for (const auto& [key, value] : preset.items()) {
        keys.insert(key);
      }
      keys.erase("workload");  // a model target may say how it is run
      if (expected.empty()) {
        expected = keys;
      }
      EXPECT_EQ(keys, expected) << group.name << "/" << name;
    }
    EXPECT_FALSE(expected.empty()) << group.name;
  }
}

TEST(Conf, EveryPresetComposes) {
  for (const PresetGroup& group : runner_declaration().groups) {
    for (const std::string& name : preset_names(group.name)) {
      EXPECT_NO_THROW(compose(std::nullopt, {group.name + "=" + name}));
    }
  }
}

TEST(Conf, ModelTargetsAreNamedLikeTheirFile) {
  for (const std::string& name : preset_names("model/llm")) {
    const Json model = embedded_yaml("model/llm/" + name + ".yaml");
    EXPECT_EQ(model.at("target"), name);
    if (model.at("config")
            .is_string()) {  // a file, made on first use: tests/real/llama.py reads it
      EXPECT_FALSE(model.at("workload").at("prepare").empty()) << name;
      continue;
    }
    EXPECT_EQ(params_of(llm_from_config(model.at("config"))).total, model.at("params")) << name;
  }
}

TEST(Conf, ModelsCostWhatTheirNamesakesInTheTestDataDo) {
  int compared = 0;
  for (const std::string& name : preset_names("model/llm")) {
    const Json preset = embedded_yaml("model/llm/" + name + ".yaml");
    for (const Json& golden : golden_models()) {
      if (golden.at("name") == preset.at("name") && preset.at("config").is_object()) {
        const LlmCost cost = cost_of(llm_from_config(preset.at("config")), decode_work(4096));
        const LlmCost expected = cost_of(llm_from_config(golden.at("config")), decode_work(4096));
        EXPECT_EQ(cost.total_flops(), expected.total_flops()) << name;
        ++compared;
      }
    }
  }
  EXPECT_EQ(compared, 21);  // three more carry a vision tower that the test data leaves out
}

}  // namespace
}  // namespace gpuwhy
