// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>

namespace llmprof {

// The bytes of libllmprof_nvtx.so, which travels inside this program.
std::string_view stage_timer_library();

// Writes it into `directory`, which must exist and not be mounted noexec; the path it then has.
// Throws kFailure.
std::filesystem::path write_stage_timer_library(const std::filesystem::path& directory);

// What a program must find in its environment, so that it and its children leave their NVTX ranges
// in `ranges_directory`, which must exist: nvtx_timer.h reads them. Both paths are made absolute. A
// process stops recording, and counts what it loses, when its file has `max_bytes` (16 GiB at
// most). A directory on a disk is better than one in memory: there each range stays in memory.
std::map<std::string, std::string> stage_timer_environment(
    const std::filesystem::path& library, const std::filesystem::path& ranges_directory,
    std::uint64_t max_bytes = std::uint64_t{1} << 30);

}  // namespace llmprof
