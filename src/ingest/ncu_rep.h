// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "trace/counters.h"

namespace llmprof {

// A .ncu-rep held in memory. Throws kInput for what is none or holds no result that can be read;
// what is damaged behind the first result is a diagnostic.
Counters parse_ncu_rep(std::string_view bytes);

}  // namespace llmprof
