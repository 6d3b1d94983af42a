// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace llmprof {

// What --version prints: number, commit, compiler, libraries.
std::string version_text();

}  // namespace llmprof
