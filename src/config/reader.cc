// SPDX-License-Identifier: Apache-2.0
//
// Typed, checked access to the composed configuration. Errors name the key and the layer that set
// it.
#include "config/reader.h"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error.h"
#include "base/json.h"
#include "base/text.h"
#include "config/compose.h"

namespace gpuwhy {

const Json& SettingsReader::at(const std::string& path) const {
  const Json* value = find_value(*config_.tree, path);
  if (value == nullptr) {
    throw Error(ErrorKind::kUsage, fmt::format("{} is needed and was removed", path));
  }
  return *value;
}

void SettingsReader::fail(const std::string& path, const std::string& wanted) const {
  const auto origin = config_.origins.find(path);
  throw Error(ErrorKind::kUsage,
              fmt::format("{} takes {}, not {}", path, wanted, printable(to_json_line(at(path)))),
              origin == config_.origins.end() ? "" : fmt::format("set by {}", origin->second));
}

std::string SettingsReader::text(const std::string& path) const {
  const Json& value = at(path);
  if (!value.is_string() || value.get_ref<const std::string&>().empty()) {
    fail(path, "a text");
  }
  return value.get<std::string>();
}

bool SettingsReader::has(const std::string& path) const {
  return !at(path).is_null();
}

std::optional<std::string> SettingsReader::optional_text(const std::string& path) const {
  if (!has(path)) {
    return std::nullopt;
  }
  return text(path);
}

bool SettingsReader::flag(const std::string& path) const {
  const Json& value = at(path);
  if (!value.is_boolean()) {
    fail(path, "true or false");
  }
  return value.get<bool>();
}

std::int64_t SettingsReader::whole_from(const std::string& path, std::int64_t least) const {
  const auto number = json_integer(at(path));
  if (!number || *number < least) {
    fail(path, fmt::format("a whole number of at least {}", least));
  }
  return *number;
}

std::vector<std::string> SettingsReader::texts(const std::string& path) const {
  std::vector<std::string> texts;
  if (!at(path).is_array()) {
    fail(path, "a list of texts");
  }
  for (const Json& value : at(path)) {
    if (!value.is_string()) {
      fail(path, "a list of texts (quote a number: \"3\")");
    }
    texts.push_back(value.get<std::string>());
  }
  return texts;
}

std::map<std::string, std::string> SettingsReader::text_map(const std::string& path) const {
  std::map<std::string, std::string> texts;
  if (!at(path).is_object()) {
    fail(path, "a mapping");
  }
  for (const auto& [key, value] : at(path).items()) {
    texts[key] = value.is_string() ? value.get<std::string>() : to_json_line(value);
  }
  return texts;
}

std::string SettingsReader::choice(const std::string& path,
                                   const std::vector<std::string>& choices) const {
  std::string given = text(path);
  if (std::find(choices.begin(), choices.end(), given) == choices.end()) {
    fail(path, fmt::format("one of {}", fmt::join(choices, ", ")));
  }
  return given;
}

}  // namespace gpuwhy
