// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <string_view>

namespace gpuwhy {

// The bytes of libgpuwhy_nvtx.so, which is embedded in this program.
std::string_view stage_timer_library();

inline constexpr const char* kStageTimerLibrary = "libgpuwhy_nvtx.so";  // its file

// The environment variable that names the library NVTX loads. NVTX takes one only.
inline constexpr const char* kNvtxInjection = "NVTX_INJECTION64_PATH";

// Writes it to `directory`, which must exist and not be mounted noexec, and returns its path.
// Throws kFailure.
std::filesystem::path write_stage_timer_library(const std::filesystem::path& directory);

// Environment variables that make a program and its children write their NVTX ranges to
// `ranges_directory`, which must exist; nvtx_timer.h reads them. Both paths are absolute.
// When its file reaches GPUWHY_NVTX_MAX_BYTES (1 GiB; 16 GiB at most), a process stops recording
// and counts what it loses. A directory on disk is better than one in memory, where each range
// occupies memory.
std::map<std::string, std::string> stage_timer_environment(
    const std::filesystem::path& library, const std::filesystem::path& ranges_directory);

}  // namespace gpuwhy
