// SPDX-License-Identifier: Apache-2.0
//
// Parsing and printing of JSON, and all of the JSON library. Headers that only name Json include
// base/json_fwd.h.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

#include "base/json_fwd.h"

namespace gpuwhy {

inline constexpr int kDeepestJson = 100;
// Of one object. Members are found one after the other, so more of them would take the square of
// their number.
inline constexpr std::size_t kMostMembers = 4096;

// Throws kInput, naming `name`, where the text is nested deeper than kDeepestJson or an object has
// more than `most_members`. Text that is not JSON may pass.
void check_json_size(std::string_view text, const std::string& name, std::size_t most_members);

// Throws kInput, naming `name` and the place, on anything but one JSON value nested at most 100
// deep, with at most 4096 members in an object.
Json parse_json(std::string_view text, const std::string& name);

// Nothing for what is not a whole number from -2^63 to 2^63 - 1: get<>() turns 2^64 - 1 into -1,
// and what it makes of -1.5 or 1e30 is not defined.
std::optional<std::int64_t> json_integer(const Json& value);

// What is not there is null: absent is not zero.
template <typename Number>
Json number_or_null(const std::optional<Number>& value) {
  return value ? Json(*value) : Json(nullptr);
}
inline Json text_or_null(std::string_view text) {
  return text.empty() ? Json(nullptr) : Json(text);
}

// {"schema": "gpuwhy.<name>", "schema_version": version}: the opening of every JSON output.
Json json_document(std::string_view name, int version);

}  // namespace gpuwhy
