// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <vector>

#include "fleet/history/history_rows.h"

namespace gpuwhy {

// A summary file, or those in a folder at any depth, sorted, without merged ones. Throws kInput if
// there is none.
std::vector<std::filesystem::path> summaries_in(const std::filesystem::path& path);

// Throws kInput.
StoredSummary load_summary(const std::filesystem::path& path);

}  // namespace gpuwhy
