// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace gpuwhy {

// The text of --version: number, commit, compiler, libraries.
std::string version_text();

// The number alone, e.g. "0.1.0".
std::string program_version();

// The commit that it was built from, e.g. "1a2b3c4" or "1a2b3c4-dirty"; empty: unknown.
std::string program_commit();

}  // namespace gpuwhy
