// SPDX-License-Identifier: Apache-2.0
//
// Keys of values in metrics.json, from the members that lead to them.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>

#include "base/json_path.h"
#include "results/field.h"

namespace gpuwhy {

// A field with its key.
struct NamedField {
  std::string key;
  Field field;
};

// The key and description of a member. An unknown member yields an empty key.
template <typename T, typename Member>
NamedField name_of(Member member) {
  NamedField named;
  describe(static_cast<const T*>(nullptr), [&](const char* key, auto other, const Field& field) {
    if constexpr (std::is_same_v<decltype(other), Member>) {
      if (other == member) {
        named = {key, field};
      }
    }
  });
  return named;
}

// The object behind a member; null where an optional one is absent.
template <typename T>
const T* present(const T& value) {
  return &value;
}
template <typename T>
const T* present(const std::optional<T>& value) {
  return value ? &*value : nullptr;
}

template <typename T, typename Member>
using Inner = std::remove_cvref_t<decltype(*present(std::declval<const ValueOf<T, Member>&>()))>;

// "efficiency.stages" of the members that lead there.
template <typename T, typename Member, typename... Rest>
std::string path_of(Member member, Rest... rest) {
  std::string key = name_of<T>(member).key;
  if constexpr (sizeof...(rest) == 0) {
    return key;
  } else {
    return key + "." + path_of<Inner<T, Member>>(rest...);
  }
}

// "stages[stage=decode]": identifies a row by what distinguishes it from its neighbours, so that it
// means the same row in another file; by index if nothing does.
template <typename Row>
std::string row_path(const std::string& array, const Row& row, std::size_t place) {
  std::map<int, std::string> names;
  describe(&row, [&](const char* key, auto member, const Field& field) {
    if constexpr (kIsText<ValueOf<Row, decltype(member)>>) {
      if (field.name_place > 0) {
        names[field.name_place] =
            std::string(key) + "=" + path_value(text_of_member(std::invoke(member, row)));
      }
    }
  });
  std::string choice;
  for (const auto& [name_place, name] : names) {
    choice += (choice.empty() ? "" : ",") + name;
  }
  return array + "[" + (choice.empty() ? std::to_string(place) : choice) + "]";
}

}  // namespace gpuwhy
