// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>

#include "base/embedded_file.h"

namespace gpuwhy {

// docs/agents/ as it is in the program.
std::span<const EmbeddedFile> embedded_skill();

}  // namespace gpuwhy
