// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace llmprof {

// What --version prints: number, commit, compiler, libraries.
std::string version_text();

// The number alone, as "0.1.0".
std::string program_version();

}  // namespace llmprof
