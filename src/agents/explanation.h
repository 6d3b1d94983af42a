// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "base/json_fwd.h"

namespace gpuwhy {

// What a word of the glossary means, or a key of metrics.json: unit, formula and sources, and its
// value where `metrics` are given (null: without a recording). Throws kUsage if there is neither.
Json explanation(const std::string& key, const Json& metrics);

}  // namespace gpuwhy
