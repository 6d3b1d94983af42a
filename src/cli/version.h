// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace llmprof {

// "0.1.0"
std::string version_number();

// What --version prints: number, commit, compiler, libraries.
std::string version_text();

}  // namespace llmprof
