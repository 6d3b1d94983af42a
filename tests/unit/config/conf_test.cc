// SPDX-License-Identifier: Apache-2.0
//
// The files of conf/ themselves.
#include <set>

#include <gtest/gtest.h>

#include "base/yaml.h"
#include "config/compose.h"
#include "config/embedded.h"
#include "config/presets.h"

namespace llmprof {
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
    EXPECT_GT(model.at("params").get<std::int64_t>(), 0) << name;
  }
}

TEST(Conf, GpuRowsAreUniqueAndOrdered) {
  std::set<std::string> names;
  const Json table = embedded_yaml("hardware/gpus.yaml");
  for (const Json& gpu : table.at("gpus")) {
    const std::string name = gpu.at("name");
    for (const Json& device : gpu.at("device_names")) {
      EXPECT_TRUE(names.insert(device).second) << device << " stands twice";
    }
    EXPECT_GT(gpu.at("sms"), 0) << name;
    EXPECT_GT(gpu.at("memory_gb_per_s"), 0) << name;
    EXPECT_FALSE(gpu.at("source").get<std::string>().empty()) << name;
    // A narrower type is never slower.
    double previous = 0;
    for (const char* dtype : {"fp32", "tf32", "bf16", "fp16", "fp8"}) {
      if (gpu.at("dense_tflops").contains(dtype)) {
        const double peak = gpu.at("dense_tflops").at(dtype);
        EXPECT_GE(peak, previous) << name << " " << dtype;
        previous = peak;
      }
    }
  }
  EXPECT_GE(names.size(), 15U);
}

}  // namespace
}  // namespace llmprof
