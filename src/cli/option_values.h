// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "cli/command.h"

namespace gpuwhy {

// Reads `text` into the option's target, which is neither a flag nor a list. Throws kUsage where it
// is not what the target takes.
void set_value(const Option& option, const std::string& text);

// The target's value as a user would type it; empty: there is none.
std::string default_text(const Option& option);

}  // namespace gpuwhy
