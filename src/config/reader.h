// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/json_fwd.h"

namespace gpuwhy {

struct Config;

// Values of a configuration by dotted path, checked against the expected type and range. Every
// function throws kUsage, naming the key and where its value came from.
class SettingsReader {
 public:
  explicit SettingsReader(const Config& config) : config_(config) {}

  std::string text(const std::string& path) const;                          // not empty
  bool has(const std::string& path) const;                                  // false: null
  std::optional<std::string> optional_text(const std::string& path) const;  // nullopt if null
  bool flag(const std::string& path) const;
  std::int64_t whole_from(const std::string& path, std::int64_t least) const;
  std::vector<std::string> texts(const std::string& path) const;
  std::map<std::string, std::string> text_map(const std::string& path) const;

  // One of `choices`.
  std::string choice(const std::string& path, const std::vector<std::string>& choices) const;

  // Reports that the value at `path` is not a `wanted`.
  [[noreturn]] void fail(const std::string& path, const std::string& wanted) const;

 private:
  const Json& at(const std::string& path) const;

  const Config& config_;
};

}  // namespace gpuwhy
