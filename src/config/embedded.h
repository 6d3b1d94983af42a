// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>

#include "base/embedded_file.h"

namespace gpuwhy {

// All of conf/, sorted by path.
std::span<const EmbeddedFile> embedded_conf();

// The same files with their values as JSON.
std::span<const EmbeddedFile> embedded_conf_values();

}  // namespace gpuwhy
