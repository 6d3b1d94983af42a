// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>

#include "base/embedded_file.h"

namespace gpuwhy {

// All of web/, sorted by path: the parts of report.html.
std::span<const EmbeddedFile> embedded_web();

}  // namespace gpuwhy
