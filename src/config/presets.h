// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"

namespace gpuwhy {

// A preset group: the folder conf/<name>/, whose files are alternatives, and the key under which
// the chosen one is mounted. Declared in the `defaults` list of conf/runner/default.yaml, in
// Hydra's notation `name@mount: choice`.
struct PresetGroup {
  std::string name;            // "profiling/ncu"
  std::string mount;           // "pipeline.ncu"
  std::string default_choice;  // "default"; empty: none
};

// Names of the files in conf/<group>/, without ".yaml", sorted.
std::vector<std::string> preset_names(std::string_view group);

// conf/<path>, parsed. Throws kFailure if it was not compiled in.
Json embedded_yaml(std::string_view path);

// Declarations of conf/runner/default.yaml besides values: its groups, and the presets that each
// run.mode selects.
struct RunnerDeclaration {
  Json values;  // the file without the two declarations
  std::vector<PresetGroup> groups;
  Json modes;  // {"light": {"profiling/ncu": "light"}}
};
RunnerDeclaration runner_declaration();

// A file the user named, parsed. Errors in it are usage errors.
Json user_yaml(const std::filesystem::path& path);

// The chosen file of a group: a name from preset_names(), or a path to a YAML file. Throws kUsage
// with the nearest name if there is none.
struct Preset {
  Json values;
  std::string origin;  // "profiling/ncu/light.yaml"
};
Preset load_preset(const PresetGroup& group, const std::string& choice);

}  // namespace gpuwhy
