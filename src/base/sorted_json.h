// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

namespace llmprof {

// JSON with keys in their alphabet's order. Json keeps the order of the file and pays for it with a
// search through all keys at each insertion, which for a mapping of a hundred thousand is a minute.
using SortedJson = nlohmann::json;

// As parse_json(), for files with many keys.
SortedJson parse_sorted_json(std::string_view text, const std::string& name);

}  // namespace llmprof
