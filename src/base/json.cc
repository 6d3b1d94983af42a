// SPDX-License-Identifier: Apache-2.0
//
// JSON parsing and printing through nlohmann's library. No other file calls them.
//
// The library's parser is iterative, but destroying or walking a value nested a million deep is
// not, and every key is looked up among all that came before it. So depth and members are counted
// while parsing, and limited to what our own files need.
#include "base/json.h"

#include <vector>

#include <fmt/format.h>

#include "base/error.h"

namespace llmprof {
Json parse_json(std::string_view text, const std::string& name) {
  std::vector<std::size_t> num_members(kDeepestJson + 2);  // of the open object at each depth
  const auto watch_size = [&](int depth, Json::parse_event_t event, Json& /*parsed*/) {
    if (depth > kDeepestJson) {
      throw Error(ErrorKind::kInput,
                  fmt::format("{} is nested deeper than {}", name, kDeepestJson));
    }
    if (event == Json::parse_event_t::object_start) {
      num_members[static_cast<std::size_t>(depth) + 1] = 0;
    } else if (event == Json::parse_event_t::key &&
               ++num_members[static_cast<std::size_t>(depth)] > kMostMembers) {
      throw Error(ErrorKind::kInput,
                  fmt::format("{} has an object of more than {} members", name, kMostMembers));
    }
    return true;
  };
  try {
    return Json::parse(text, watch_size);
  } catch (const Json::parse_error& error) {
    throw Error(ErrorKind::kInput,
                fmt::format("{} is not valid JSON (at byte {})", name, error.byte));
  } catch (const Json::exception& error) {
    throw Error(ErrorKind::kInput, fmt::format("{} is not usable JSON: {}", name, error.what()));
  }
}

std::string to_json_text(const Json& value) {
  return value.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::string to_json_line(const Json& value) {
  return value.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::string json_object_line(const std::vector<JsonField>& fields) {
  Json object = Json::object();
  for (const auto& [key, value] : fields) {
    Json& field = object[std::string(key)];
    if (const auto* inner = std::get_if<SharedJson>(&value)) {
      field = *inner == nullptr ? Json(nullptr) : **inner;
    } else if (const auto* number = std::get_if<std::int64_t>(&value)) {
      field = *number;
    } else {
      field = std::get<std::string>(value);
    }
  }
  return to_json_line(object);
}

std::string json_number(double value) {
  return to_json_line(value);
}

Json json_document(std::string_view name, int version) {
  return Json{{"schema", fmt::format("llmprof.{}", name)}, {"schema_version", version}};
}

}  // namespace llmprof
