// SPDX-License-Identifier: Apache-2.0
//
// Readers of the files in which serving benchmarks and servers record requests.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "trace/requests.h"

namespace gpuwhy {

// Limits of a request file. Beyond them it is refused, so memory is bounded.
inline constexpr std::size_t kMostRequests = 5'000'000;
inline constexpr std::size_t kMostTokenTimes = 100'000'000;

// Reads the requests of a file; its format is recognized by its contents. Throws kInput or kUsage,
// and names the file.
Requests load_requests(const std::filesystem::path& path);

// The same for text in memory.
Requests parse_requests(std::string_view text, const std::string& name);

// "gpuwhy's own JSONL, AIPerf's profile_export.jsonl, ...": the supported formats.
std::string request_kinds();

}  // namespace gpuwhy
