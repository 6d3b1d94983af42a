// SPDX-License-Identifier: Apache-2.0
//
// Models and GPUs by the name or path that a user typed.
//
// An existing file takes precedence over a name in conf/: a user with a directory called
// llama_3_1_8b means that.
#include "session/reading/named_model.h"

#include <algorithm>
#include <cctype>
#include <filesystem>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error.h"
#include "base/json.h"
#include "base/parse_number.h"
#include "base/text.h"
#include "config/presets.h"
#include "model/checkpoint.h"

namespace gpuwhy {
namespace {

// A preset's `config` is the mapping itself, or a path to it.
NamedModel from_preset(const Json& preset, const std::string& origin) {
  const Json config = preset.is_object() && preset.contains("config") ? preset["config"] : Json();
  const std::string name =
      preset.is_object() && preset.contains("name") && preset["name"].is_string()
          ? preset["name"].get<std::string>()
          : origin;
  if (config.is_string()) {
    std::error_code ignored;
    const auto file = config.get<std::string>();
    if (!std::filesystem::exists(file, ignored)) {
      throw Error(ErrorKind::kInput,
                  fmt::format("{} is described by {}, which is not there", printable(origin),
                              printable(file)),
                  fmt::format("gpuwhy run model.target={} makes it, if its target says how",
                              printable(origin)));
    }
    return {name, load_llm(file)};
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

// "Qwen3-8B" is the preset qwen3_8b.
std::string preset_name(std::string name) {
  for (char& c : name) {
    c = c == '-' || c == '.' ? '_' : static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  return name;
}

}  // namespace

NamedModel named_model(const std::string& given) {
  // A path, then a preset; a misspelled name gets a suggestion.
  if (is_path(given)) {
    if (given.ends_with(".yaml")) {
      return from_preset(user_yaml(given), given);
    }
    const std::filesystem::path path(given);
    const std::string name = path.filename().string();
    return {name == "config.json" || name.empty() ? given : name, load_llm(path)};
  }
  const std::vector<std::string> names = model_names();
  const std::string preset = preset_name(given);
  if (std::find(names.begin(), names.end(), preset) == names.end()) {
    const auto guess = nearest(given, names);
    throw Error(ErrorKind::kUsage, fmt::format("there is no model '{}'", printable(given)),
                guess ? fmt::format("did you mean '{}'? gpuwhy list models has all", *guess)
                      : "give a name of gpuwhy list models, or a path to a config.json, a "
                        "checkpoint's directory, a .gguf or a .safetensors");
  }
  return from_preset(embedded_yaml("model/llm/" + preset + ".yaml"), preset);
}

ImageSize image_of(const std::string& text) {
  ImageSize image;
  const auto pair_of = [&](std::string_view pair, std::int64_t& first, std::int64_t& second) {
    const auto parts = split(pair, 'x');
    first = parse_whole(parts[0]).value_or(0);
    second = parts.size() == 2 ? parse_whole(parts[1]).value_or(0) : 0;
    if (first < 1 || second < 1) {
      throw Error(ErrorKind::kUsage,
                  fmt::format("--image takes WIDTHxHEIGHT in pixels, not '{}'", printable(text)),
                  "as 1008x1008; DeepSeek-OCR's crops as 1024x1024+2x3");
    }
  };
  const std::string_view whole = text;
  const std::size_t plus = whole.find('+');
  pair_of(whole.substr(0, plus), image.width_px, image.height_px);
  if (plus != std::string_view::npos) {
    pair_of(whole.substr(plus + 1), image.crops_wide, image.crops_high);
  }
  return image;
}

std::vector<std::string> model_names() {
  return preset_names("model/llm");
}

std::vector<GpuSpec> known_gpus() {
  static const std::vector<GpuSpec> kGpus = gpu_table(embedded_yaml("hardware/gpus.yaml"));
  return kGpus;  // several rules ask for it
}

GpuMatch named_gpu(const std::string& given) {
  if (!given.ends_with(".yaml")) {
    GpuMatch match = find_gpu(known_gpus(), given, {});
    if (!match.variants.empty()) {
      throw Error(ErrorKind::kUsage,
                  fmt::format("'{}' is the name of {} GPUs with different speeds", printable(given),
                              match.variants.size()),
                  fmt::format("name one: {}", fmt::join(match.variants, ", ")));
    }
    return match;
  }
  const std::vector<GpuSpec> table = gpu_table(user_yaml(given));
  if (table.empty()) {
    throw Error(ErrorKind::kInput, fmt::format("{} has no row under 'gpus'", given));
  }
  return {table.front(), "", {}};
}

GpuMatch chosen_gpu(const std::string& given) {
  GpuMatch match = named_gpu(given);
  if (!match.gpu) {
    throw Error(ErrorKind::kUsage, match.reason);
  }
  return match;
}

EfficiencySetup model_setup(const ModelChoice& choice) {
  EfficiencySetup setup = choice.setup;
  NamedModel named = named_model(choice.model);
  setup.model_name = named.name;
  setup.llm = std::move(named.llm);
  if (!choice.gpu_name.empty()) {
    setup.gpu = chosen_gpu(choice.gpu_name);
  }
  if (!choice.image.empty()) {
    if (!setup.llm.vision) {
      throw Error(ErrorKind::kUsage, fmt::format("{} takes no images", printable(named.name)));
    }
    setup.image = image_cost(*setup.llm.vision, image_of(choice.image));
  }
  return setup;
}

}  // namespace gpuwhy
