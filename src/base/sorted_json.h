// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

namespace gpuwhy {

// JSON with keys in alphabetical order. Json keeps the order of the file and therefore searches all
// keys at each insertion, which takes a minute for a hundred thousand keys.
using SortedJson = nlohmann::json;

// Like parse_json(), for files with many keys.
SortedJson parse_sorted_json(std::string_view text, const std::string& name);

}  // namespace gpuwhy
