// SPDX-License-Identifier: Apache-2.0
//
// JSON of rows by their descriptions.
#pragma once

#include <functional>
#include <map>

#include "base/json.h"
#include "results/field.h"

namespace gpuwhy {

template <typename T>
Json value_json(const T& value, const Field& field);

// A row's description may look at the row: a field that it leaves out has no key.
template <typename T>
Json object_json(const T& object, Json json = Json::object()) {
  describe(&object, [&](const char* key, auto member, const Field& field) {
    json.emplace(key, value_json(std::invoke(member, object), field));
  });
  return json;
}

// JSON of a value by its type. A type with a form of its own has a json_form(), and an enumeration
// its words in id_of(). What is null if empty is an empty text, a 0, or the first of an
// enumeration.
template <typename T>
Json value_json(const T& value, const Field& field) {
  if constexpr (requires { json_form(value); }) {
    return json_form(value);
  } else if constexpr (Worded<T>) {
    return field.is_null_if_empty && value == T() ? Json(nullptr) : Json(word_of(value));
  } else if constexpr (kIsText<T>) {
    const std::string& text = text_of_member(value);
    return field.is_null_if_empty ? text_or_null(text) : Json(text);
  } else if constexpr (std::is_arithmetic_v<T>) {
    return field.is_null_if_empty && value == T() ? Json(nullptr) : Json(value);
  } else if constexpr (std::is_enum_v<T>) {
    return field.is_null_if_empty && value == T() ? Json(nullptr) : Json(id_of(value));
  } else if constexpr (std::is_same_v<T, BucketTimes>) {
    Json json = Json::object();
    for (std::size_t i = 0; i < kNumBuckets; ++i) {
      json.emplace(kBucketNames[i], value[i]);
    }
    return json;
  } else if constexpr (std::is_same_v<T, NumberPair>) {
    return Json::array({value.first, value.second});
  } else if constexpr (std::is_same_v<T, std::map<std::string, std::int64_t>>) {
    return Json(value);
  } else if constexpr (kIsOptional<T>) {
    return value ? value_json(*value, field) : Json(nullptr);
  } else if constexpr (kIsList<T>) {
    if (field.is_null_if_empty && value.empty()) {
      return nullptr;
    }
    Json json = Json::array();
    for (const auto& item : value) {
      json.push_back(value_json(item, {}));
    }
    return json;
  } else {
    return object_json(value);
  }
}

}  // namespace gpuwhy
