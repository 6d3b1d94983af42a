// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "base/json_fwd.h"

namespace gpuwhy {

// Like parse_json(), but keeps all values of a key that occurs twice, because readers differ in
// which one they show. Throws kInput.
Json parse_whole_json(std::string_view text, const std::string& name);

// Appends a key to an object, even if it is already there.
void append_key(Json& object, std::string key, Json value);

}  // namespace gpuwhy
