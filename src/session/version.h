// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace gpuwhy {

// The text of --version: number, commit, compiler, libraries.
std::string version_text();

// The number alone, e.g. "0.1.0".
std::string program_version();

}  // namespace gpuwhy
