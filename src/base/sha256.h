// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

namespace gpuwhy {

// SHA-256 as 64 lower-case hexadecimal digits.
std::string sha256_hex(std::string_view bytes);

// The same as 32 raw bytes.
std::string sha256_bytes(std::string_view bytes);

// The hash of a file's contents, read in blocks: reports of many gigabytes take constant memory.
// Throws kInput.
std::string sha256_of_file(const std::filesystem::path& path);

}  // namespace gpuwhy
