// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "trace/counters.h"

namespace gpuwhy {

// Parses a .ncu-rep in memory. Throws kInput if it is not one or has no readable result. Damage
// after the first result is a diagnostic.
Counters parse_ncu_rep(std::string_view bytes);

}  // namespace gpuwhy
