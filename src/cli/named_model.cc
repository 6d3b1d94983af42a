// SPDX-License-Identifier: Apache-2.0
//
// From what a user typed to a model. A file that is there wins over a name of conf/: someone who
// has a directory called llama_3_1_8b means that.
#include "cli/named_model.h"

#include <algorithm>
#include <filesystem>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error.h"
#include "base/text.h"
#include "config/presets.h"
#include "model/checkpoint.h"

namespace llmprof {
namespace {

// A preset's `config` is the mapping itself, or a path to where it stands.
NamedModel from_preset(const Json& preset, const std::string& origin) {
  const Json config = preset.is_object() && preset.contains("config") ? preset["config"] : Json();
  const std::string name =
      preset.is_object() && preset.contains("name") && preset["name"].is_string()
          ? preset["name"].get<std::string>()
          : origin;
  if (config.is_string()) {
    return {name, load_llm(config.get<std::string>())};
  }
  if (!config.is_object()) {
    throw Error(ErrorKind::kInput, fmt::format("{} has no mapping 'config'", printable(origin)),
                "compare it with conf/model/llm/llama_3_1_8b.yaml");
  }
  return with_context(fmt::format("in {}", origin), [&] {
    return NamedModel{name, llm_from_config(config)};
  });
}

bool is_path(const std::string& given) {
  std::error_code ignored;
  return given.find('/') != std::string::npos || std::filesystem::exists(given, ignored) ||
         given.ends_with(".json") || given.ends_with(".gguf") || given.ends_with(".safetensors") ||
         given.ends_with(".yaml");
}

}  // namespace

NamedModel named_model(const std::string& given) {
  if (is_path(given)) {
    if (given.ends_with(".yaml")) {
      return from_preset(user_yaml(given), given);
    }
    const std::filesystem::path path(given);
    const std::string name = path.filename().string();
    return {name == "config.json" || name.empty() ? given : name, load_llm(path)};
  }
  const std::vector<std::string> names = model_names();
  if (std::find(names.begin(), names.end(), given) == names.end()) {
    const auto guess = nearest(given, names);
    throw Error(ErrorKind::kUsage, fmt::format("there is no model '{}'", printable(given)),
                guess ? fmt::format("did you mean '{}'? llmprof list models has all", *guess)
                      : "give a name of llmprof list models, or a path to a config.json, a "
                        "checkpoint's directory, a .gguf or a .safetensors");
  }
  return from_preset(embedded_yaml("model/llm/" + given + ".yaml"), given);
}

std::vector<std::string> model_names() {
  return preset_names("model/llm");
}

std::vector<GpuSpec> known_gpus() {
  return gpu_table(embedded_yaml("hardware/gpus.yaml"));
}

GpuMatch named_gpu(const std::string& given, const GpuAttributes& attributes) {
  if (!given.ends_with(".yaml")) {
    return find_gpu(known_gpus(), given, attributes);
  }
  const std::vector<GpuSpec> table = gpu_table(user_yaml(given));
  if (table.empty()) {
    throw Error(ErrorKind::kInput, fmt::format("{} has no row under 'gpus'", given));
  }
  return {table.front(), "", {}};
}

}  // namespace llmprof
