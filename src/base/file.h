// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

#include "base/units.h"

namespace llmprof {

// The whole file as bytes. Throws kInput when it is missing, not a regular file, or larger than
// `limit_bytes`: text that people write is small, and a mistyped path must not fill the memory.
std::string read_file(const std::filesystem::path& path, std::uint64_t limit_bytes = 16 * kMiB);

// Contents of a /proc-like file (no size, may vanish), or empty.
std::string read_pseudo_file(const std::filesystem::path& path);

// Writes under a temporary name in the same directory, then renames: readers see the old file or
// the new one, never a part. A failure leaves no temporary behind. Throws kFailure.
void write_file(const std::filesystem::path& path, std::string_view contents);

}  // namespace llmprof
