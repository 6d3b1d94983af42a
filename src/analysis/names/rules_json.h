// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "analysis/names/rules.h"
#include "base/json_fwd.h"

namespace gpuwhy {

// From conf/rules/kernels.yaml and conf/rules/stages.yaml. Throws kUsage if they are malformed.
Rules rules_from(const Json& kernels, const Json& stages);

// Puts the rows of a user's file first: `families` as in kernels.yaml, `stages` as in stages.yaml,
// or both. Throws kUsage, naming the file and the row that is wrong.
void add_user_rules(const std::string& name, std::string_view text, Rules& rules);

}  // namespace gpuwhy
