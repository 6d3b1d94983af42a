// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/json_fwd.h"

namespace gpuwhy {

// The configuration of one invocation.
struct Config {
  SharedJson tree;  // values by nested key
  std::map<std::string, std::string>
      origins;                     // dotted path of a leaf -> the file or override it came from
  std::vector<std::string> notes;  // sentences for the user: accepted, but look twice
};

// Merges, in increasing priority: conf/runner/default.yaml, the chosen presets, `user_file`,
// `overrides` in their order.
//
// An override is one argument in a subset of Hydra's grammar:
//   run.mode=light            a known key; the value is a YAML scalar, list or mapping of the key's
//   type +model.note=x  ++...      the same, and a key that is not known is added
//   ~pipeline.nsys.delay_s    removes a key
//   profiling/ncu=light       chooses a preset, by name or by path; ~profiling/ncu chooses none
// An unknown key is an error that suggests the nearest known one. Throws kUsage, or kInput for an
// unreadable file.
Config compose(const std::optional<std::filesystem::path>& user_file,
               const std::vector<std::string>& overrides);

// The value at a dotted path; null if there is none.
const Json* find_value(const Json& tree, std::string_view dotted_path);

// The value of --config; nullopt if it is empty.
inline std::optional<std::filesystem::path> user_file(const std::string& given) {
  return given.empty() ? std::nullopt : std::optional<std::filesystem::path>(given);
}

}  // namespace gpuwhy
