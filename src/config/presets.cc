// SPDX-License-Identifier: Apache-2.0
//
// Preset files in conf/, compiled into the program, and the groups of alternatives they form.
//
// A choice that contains a slash or ends in .yaml is a path, so a user can add a model or an ncu
// preset with one file and no rebuild. Everything else is a name in conf/<group>/.
#include "config/presets.h"

#include <algorithm>
#include <cstdint>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "base/text.h"
#include "base/yaml.h"
#include "config/embedded.h"

namespace gpuwhy {
namespace {

constexpr std::string_view kRunner = "runner/default.yaml";
constexpr std::string_view kSuffix = ".yaml";

PresetGroup parse_group(const std::string& declaration, const Json& choice) {
  const std::size_t at = declaration.find('@');
  return {declaration.substr(0, at), declaration.substr(at + 1),
          choice.is_null() ? "" : choice.get<std::string>()};
}

// YAML's whole numbers are signed, and JSON's are not where they have no sign: types are compared
// when a user overrides a value.
void make_signed(Json& value) {
  if (value.is_number_unsigned()) {
    value = value.get<std::int64_t>();
  } else if (value.is_structured()) {
    for (Json& child : value) {
      make_signed(child);
    }
  }
}

}  // namespace

std::vector<std::string> preset_names(std::string_view group) {
  const std::string folder = std::string(group) + "/";
  std::vector<std::string> names;
  for (const EmbeddedFile& file : embedded_conf()) {
    if (file.path.starts_with(folder) && file.path.ends_with(kSuffix)) {
      names.emplace_back(
          file.path.substr(folder.size(), file.path.size() - folder.size() - kSuffix.size()));
    }
  }
  return names;
}

Json embedded_yaml(std::string_view path) {
  for (const EmbeddedFile& file : embedded_conf_values()) {
    if (file.path == path) {
      Json values = parse_json(file.text, fmt::format("conf/{}", path));
      make_signed(values);
      return values;
    }
  }
  throw Error(ErrorKind::kFailure, fmt::format("this build carries no conf/{}", path));
}

RunnerDeclaration runner_declaration() {
  RunnerDeclaration runner;
  runner.values = embedded_yaml(kRunner);
  for (const Json& entry : runner.values.at("defaults")) {
    const auto item = entry.items().begin();
    runner.groups.push_back(parse_group(item.key(), item.value()));
  }
  runner.modes = runner.values.at("modes");
  runner.values.erase("defaults");
  runner.values.erase("modes");
  return runner;
}

Json user_yaml(const std::filesystem::path& path) {
  try {
    return parse_yaml(read_file(path), path.string());
  } catch (const Error& error) {
    throw Error(ErrorKind::kUsage, error.message(),
                "it should be a YAML file of keys, as conf/ has");
  }
}

Preset load_preset(const PresetGroup& group, const std::string& choice) {
  if (choice.find('/') != std::string::npos || choice.ends_with(kSuffix)) {
    return {user_yaml(choice), choice};
  }
  const std::vector<std::string> names = preset_names(group.name);
  if (std::find(names.begin(), names.end(), choice) == names.end()) {
    const auto guess = nearest(choice, names);
    throw Error(ErrorKind::kUsage,
                fmt::format("{} has no preset '{}'", group.name, printable(choice)),
                fmt::format("{}presets: {}; or give a path to a YAML file",
                            guess ? fmt::format("did you mean '{}'? ", *guess) : "",
                            fmt::join(names, ", ")));
  }
  const std::string path = group.name + "/" + choice + std::string(kSuffix);
  return {embedded_yaml(path), path};
}

}  // namespace gpuwhy
