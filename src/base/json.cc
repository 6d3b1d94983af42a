// SPDX-License-Identifier: Apache-2.0
//
// JSON parsing and printing through nlohmann's library. No other file calls them.
//
// The library's parser is iterative, but destroying or walking a value nested a million deep is
// not, and every key is looked up among all that came before it. So depth and members are limited
// to what our own files need. They are counted in the text before it is parsed: with a callback the
// library walks through all earlier siblings whenever an object ends, which takes the square of
// their number.
#include "base/json.h"

#include <array>
#include <vector>

#include <fmt/format.h>

#include "base/error.h"

namespace gpuwhy {

void check_json_size(std::string_view text, const std::string& name, std::size_t most_members) {
  std::array<std::size_t, kDeepestJson + 1> num_members{};  // of what is open at each depth
  std::size_t depth = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    switch (text[i]) {
      case '"':
        for (++i; i < text.size() && text[i] != '"'; ++i) {
          i += text[i] == '\\' ? 1 : 0;
        }
        break;
      case '[':
      case '{':
        if (depth == kDeepestJson) {
          throw Error(ErrorKind::kInput,
                      fmt::format("{} is nested deeper than {}", name, kDeepestJson));
        }
        num_members[++depth] = 0;
        break;
      case ']':
      case '}':
        depth -= depth > 0 ? 1 : 0;
        break;
      case ':':
        if (++num_members[depth] > most_members) {
          throw Error(ErrorKind::kInput,
                      fmt::format("{} has an object of more than {} members", name, most_members));
        }
        break;
      default:
        break;
    }
  }
}

Json parse_json(std::string_view text, const std::string& name) {
  check_json_size(text, name, kMostMembers);
  try {
    return Json::parse(text);
  } catch (const Json::parse_error& error) {
    throw Error(ErrorKind::kInput,
                fmt::format("{} is not valid JSON (at byte {})", name, error.byte));
  } catch (const Json::exception& error) {
    throw Error(ErrorKind::kInput, fmt::format("{} is not usable JSON: {}", name, error.what()));
  }
}

std::optional<std::int64_t> json_integer(const Json& value) {
  const bool fits = value.is_number_unsigned() ? value.get<std::uint64_t>() <= INT64_MAX
                                               : value.is_number_integer();
  return fits ? std::optional(value.get<std::int64_t>()) : std::nullopt;
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
  return Json{{"schema", fmt::format("gpuwhy.{}", name)}, {"schema_version", version}};
}

}  // namespace gpuwhy
