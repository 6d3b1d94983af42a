// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace llmprof {

// Takes environments, keys and `values` (of secret_values()) out of the string table of an nsys
// SQLite export, in place and without a trace in free pages. True when a key was among them: then
// the report it was made from holds it too. Throws kFailure.
bool scrub_sqlite(const std::filesystem::path& sqlite, const std::vector<std::string>& values);

}  // namespace llmprof
