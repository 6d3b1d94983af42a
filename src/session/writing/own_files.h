// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace gpuwhy {

// Before these files are written. Throws kUsage if one exists that gpuwhy did not write there, or
// whose size was changed since. Lists them, so that a write that is cut short can be repeated.
void claim_files(const std::filesystem::path& folder, const std::vector<std::string>& names);

// After they were written: lists them with their sizes.
void confirm_files(const std::filesystem::path& folder);

}  // namespace gpuwhy
