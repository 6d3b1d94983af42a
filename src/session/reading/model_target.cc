// SPDX-License-Identifier: Apache-2.0
//
// Model targets: `gpuwhy run model.target=NAME` without any further options.
//
// A target is data: argument lists with three placeholders, never a shell command, so a path with a
// blank or a quotation mark is an ordinary word. A user's own command is not expanded: its braces
// are kept.
#include "session/reading/model_target.h"

#include <fmt/format.h>

#include "base/error.h"
#include "base/json.h"
#include "base/sha256.h"
#include "base/text.h"
#include "base/units.h"
#include "capture/tools.h"
#include "config/compose.h"
#include "config/reader.h"
#include "model/checkpoint.h"

namespace gpuwhy {
namespace {

namespace fs = std::filesystem;

// At about 1 GB/s: half a minute is the longest acceptable delay before the first pass.
constexpr std::uintmax_t kMostHashedBytes = 32 * kGiB;

// The program's path. Examples are built next to gpuwhy, and few users have that folder in their
// PATH.
void find_program(const System& system, const SettingsReader& reader,
                  std::vector<std::string>& words) {
  if (words.empty() || words[0].find('/') != std::string::npos) {
    return;
  }
  if (const auto found = find_on_path(system, words[0])) {
    words[0] = found->string();
    return;
  }
  std::error_code failure;
  const fs::path beside = fs::read_symlink("/proc/self/exe", failure).parent_path() / words[0];
  if (failure || !fs::is_regular_file(beside, failure)) {
    const std::string target = reader.optional_text("model.target").value_or("");
    const std::optional<std::string> needs = reader.optional_text("model.workload.needs");
    throw Error(
        ErrorKind::kUsage,
        fmt::format("model.target={} runs '{}', which is neither on PATH nor beside gpuwhy",
                    printable(target), printable(words[0])),
        fmt::format("{}another program: gpuwhy run model.target={} -- PROGRAM [ARGUMENT...]",
                    needs ? "it needs " + printable(*needs) + "; " : "", printable(target)));
  }
  words[0] = beside.string();
}

const Json* value_at(const Config& config, const char* path) {
  const Json* value = find_value(*config.tree, path);
  return value == nullptr || value->is_null() ? nullptr : value;
}

std::string target_name(const Config& config) {
  for (const char* path : {"model.name", "model.target"}) {
    if (const Json* value = value_at(config, path); value != nullptr && value->is_string()) {
      return value->get<std::string>();
    }
  }
  return "the model";
}

}  // namespace

bool TargetWorkload::needs_preparation() const {
  std::error_code ignored;
  return !prepare.empty() && !model_file.empty() && !fs::exists(model_file, ignored);
}

TargetWorkload target_workload_of(const Config& config, const System& system, bool has_command) {
  const SettingsReader reader(config);
  TargetWorkload target{reader.texts("model.workload.command"),
                        reader.texts("model.workload.prepare"),
                        reader.texts("model.workload.operators"),
                        {}};
  if (const Json* shape = value_at(config, "model.config"); shape && shape->is_string()) {
    target.model_file = shape->get<std::string>();
  }
  // With a command of the user, the target only describes the model; its program need not exist.
  if (!has_command) {
    find_program(system, reader, target.command);
  }
  std::error_code ignored;
  if (target.needs_preparation()) {
    find_program(system, reader, target.prepare);
  } else if (!target.model_file.empty() && !fs::exists(target.model_file, ignored)) {
    throw Error(
        ErrorKind::kUsage,
        fmt::format("model.config: there is no {}", printable(target.model_file.string())),
        "give the path of a config.json, a checkpoint's directory, a .gguf or a .safetensors");
  }
  return target;
}

std::vector<std::string> filled(std::vector<std::string> words,
                                const std::map<std::string, std::string>& values) {
  for (std::string& word : words) {
    std::string result;
    for (std::size_t at = 0; at < word.size();) {
      const std::size_t close = word[at] == '{' ? word.find('}', at) : std::string::npos;
      const auto value = close == std::string::npos
                             ? values.end()
                             : values.find(word.substr(at + 1, close - at - 1));
      if (value == values.end()) {
        result += word[at++];
      } else {
        result += value->second;
        at = close + 1;
      }
    }
    word = std::move(result);
  }
  return words;
}

std::optional<NamedModel> target_model(const Config& config) {
  const Json* shape = value_at(config, "model.config");
  if (shape == nullptr) {
    return std::nullopt;
  }
  if (shape->is_string()) {
    return NamedModel{target_name(config), load_llm(shape->get<std::string>())};
  }
  return with_context("in model.config", [&] {
    return NamedModel{target_name(config), llm_from_config(*shape)};
  });
}

Json target_json(const Config& config, const std::optional<NamedModel>& model) {
  if (value_at(config, "model.target") == nullptr && !model) {
    return nullptr;
  }
  Json facts = Json::object();
  for (const char* key : {"target", "name", "variant", "params", "dtype"}) {
    const Json* value = value_at(config, (std::string("model.") + key).c_str());
    facts[key] = value != nullptr ? *value : Json(nullptr);
  }
  if (model) {
    const bool has_cost = model->llm.no_cost_reason.empty();
    if (has_cost) {
      facts["params"] = params_of(model->llm).total;  // by its shape or tensors, not by hearsay
    }
    facts["weights"] = text_or_null(model->llm.weight_dtype);
  }
  // The file is identified by its hash, so that two runs can be compared.
  std::error_code failure;
  const Json* shape = value_at(config, "model.config");
  if (shape == nullptr || !shape->is_string() ||
      !fs::is_regular_file(shape->get<std::string>(), failure)) {
    return facts;
  }
  const fs::path file = shape->get<std::string>();
  const std::uintmax_t size = fs::file_size(file);
  facts["file"] = file.string();
  facts["file_bytes"] = size;
  const bool is_hashed = size <= kMostHashedBytes;
  facts["sha256"] = is_hashed ? Json(sha256_of_file(file)) : Json(nullptr);
  if (!is_hashed) {
    facts["sha256_reason"] =
        fmt::format("files of more than {} are not hashed", format_bytes(kMostHashedBytes));
  }
  return facts;
}

}  // namespace gpuwhy
