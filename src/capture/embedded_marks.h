// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>

#include "base/embedded_file.h"

namespace gpuwhy {

// All of src/marks/python/, sorted by path.
std::span<const EmbeddedFile> embedded_marks();

}  // namespace gpuwhy
