// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "analysis/rules.h"
#include "base/json_fwd.h"

namespace llmprof {

// From conf/rules/kernels.yaml and conf/rules/stages.yaml. Throws kUsage if they are malformed.
Rules rules_from(const Json& kernels, const Json& stages);

}  // namespace llmprof
