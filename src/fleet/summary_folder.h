// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <vector>

#include "fleet/history_rows.h"

namespace llmprof {

// A summary's file, or those of a folder at any depth, sorted; merged ones are left out. Throws
// kInput when there is none.
std::vector<std::filesystem::path> summaries_in(const std::filesystem::path& path);

// Throws kInput.
StoredSummary load_summary(const std::filesystem::path& path);

}  // namespace llmprof
