// SPDX-License-Identifier: Apache-2.0
//
// Range-checked numbers from untrusted model configurations.
//
// nlohmann's get<int64_t>() silently converts 1e30, -1 and 2^64-1 into something else. Here they
// are errors that name their key.
#include "model/config_reader.h"

#include <cmath>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error.h"
#include "base/json.h"
#include "base/list_of.h"
#include "base/text.h"

namespace gpuwhy {
namespace {

constexpr std::int64_t kLargest = std::int64_t{1} << 31;
constexpr std::size_t kLongestLayerList = 4096;  // layers

}  // namespace

ConfigReader::ConfigReader(const Json& config, std::string where)
    : config_(config), where_(std::move(where)) {
  if (!config.is_object()) {
    throw Error(ErrorKind::kInput, fmt::format("{} is not a mapping of keys",
                                               where_.empty() ? "the configuration" : where_));
  }
}

const Json* ConfigReader::find(const char* key) const {
  const auto found = config_.find(key);
  return found == config_.end() || found->is_null() ? nullptr : &*found;
}

void ConfigReader::fail(const char* key, const Json& value, const char* wanted) const {
  std::string shown = printable(to_json_line(value));
  if (shown.size() > 60) {
    shown = shown.substr(0, 60) + "...";
  }
  throw Error(ErrorKind::kInput, fmt::format("{}{}{} is {}, not {}", where_,
                                             where_.empty() ? "" : ".", key, shown, wanted));
}

std::int64_t ConfigReader::whole(const char* key, const Json& value, std::int64_t least) const {
  const char* wanted = least > 0 ? "a whole number from 1 to 2^31" : "a whole number up to 2^31";
  if (value.is_number_float()) {  // 4.0 happens
    const double number = value.get<double>();
    if (std::floor(number) == number && number >= static_cast<double>(least) &&
        number <= static_cast<double>(kLargest)) {
      return static_cast<std::int64_t>(number);
    }
    fail(key, value, wanted);
  }
  const auto number = json_integer(value);
  if (!number || *number < least || *number > kLargest) {
    fail(key, value, wanted);
  }
  return *number;
}

std::optional<std::int64_t> ConfigReader::find_size(std::initializer_list<const char*> keys) const {
  for (const char* key : keys) {
    if (const Json* value = find(key)) {
      return whole(key, *value, 1);
    }
  }
  return std::nullopt;
}

std::int64_t ConfigReader::size(std::initializer_list<const char*> keys) const {
  if (const auto found = find_size(keys)) {
    return *found;
  }
  throw Error(ErrorKind::kInput,
              fmt::format("{}{} is missing", where_.empty() ? "" : where_ + ".", *keys.begin()),
              keys.size() == 1 ? "" : fmt::format("one of: {}", fmt::join(keys, ", ")));
}

std::int64_t ConfigReader::size(std::initializer_list<const char*> keys,
                                std::int64_t otherwise) const {
  return find_size(keys).value_or(otherwise);
}

std::int64_t ConfigReader::count(const char* key, std::int64_t otherwise) const {
  const Json* value = find(key);
  return value == nullptr ? otherwise : whole(key, *value, 0);
}

std::string ConfigReader::text(const char* key, const std::string& otherwise) const {
  const Json* value = find(key);
  if (value == nullptr) {
    return otherwise;
  }
  if (!value->is_string()) {
    fail(key, *value, "a text");
  }
  return value->get<std::string>();
}

std::optional<bool> ConfigReader::find_flag(const char* key) const {
  const Json* value = find(key);
  if (value == nullptr) {
    return std::nullopt;
  }
  if (!value->is_boolean()) {
    fail(key, *value, "true or false");
  }
  return value->get<bool>();
}

bool ConfigReader::flag(const char* key, bool otherwise) const {
  return find_flag(key).value_or(otherwise);
}

std::vector<std::int64_t> ConfigReader::sizes(const char* key,
                                              std::vector<std::int64_t> otherwise) const {
  const Json* value = find(key);
  if (value == nullptr) {
    return otherwise;
  }
  if (!value->is_array() || value->size() > kLongestLayerList) {
    fail(key, *value, "a list of at most 4096 whole numbers");
  }
  auto numbers =
      list_of<std::int64_t>(*value, [&](const Json& item) { return whole(key, item, 0); });
  return numbers;
}

std::vector<std::string> ConfigReader::texts(const char* key) const {
  const Json* value = find(key);
  if (value == nullptr) {
    return {};
  }
  if (!value->is_array() || value->size() > kLongestLayerList) {
    fail(key, *value, "a list of at most 4096 texts");
  }
  std::vector<std::string> list;
  for (const Json& item : *value) {
    if (!item.is_string()) {
      fail(key, item, "a text");
    }
    list.push_back(item.get<std::string>());
  }
  return list;
}

bool ConfigReader::has(const char* key) const {
  return find(key) != nullptr;
}

std::vector<std::string> ConfigReader::set_keys() const {
  std::vector<std::string> keys;
  keys.reserve(config_.size());
  for (const auto& [key, value] : config_.items()) {
    const bool is_off = value.is_null() || value == false || value == 0 ||
                        (value.is_string() && value.get_ref<const std::string&>().empty()) ||
                        (value.is_structured() && value.empty());
    if (!is_off) {
      keys.push_back(key);
    }
  }
  return keys;
}

bool ConfigReader::has_object(const char* key) const {
  const Json* value = find(key);
  return value != nullptr && value->is_object();
}

bool ConfigReader::has_list(const char* key) const {
  const Json* value = find(key);
  return value != nullptr && value->is_array();
}

const Json& ConfigReader::object(const char* key) const {
  static const Json kEmpty = Json::object();
  const Json* value = find(key);
  if (value == nullptr) {
    return kEmpty;
  }
  if (!value->is_object()) {
    fail(key, *value, "a mapping");
  }
  return *value;
}

}  // namespace gpuwhy
