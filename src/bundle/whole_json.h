// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "base/json_fwd.h"

namespace llmprof {

// parse_json(), with the values of a key that is given twice all kept: what one reader passes over
// the next one shows. Throws kInput as it does.
Json parse_whole_json(std::string_view text, const std::string& name);

// Adds a key at the end of an object, whether or not it is there.
void append_key(Json& object, std::string key, Json value);

}  // namespace llmprof
