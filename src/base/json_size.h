// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace llmprof {

// Throws kInput, naming `name`, where the text is nested deeper than kDeepestJson or an object has
// more than `most_members`. Text that is not JSON may pass.
void check_json_size(std::string_view text, const std::string& name, std::size_t most_members);

}  // namespace llmprof
