// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

namespace gpuwhy {

struct Config;

// Typed configuration options. Values have been checked for meaning, not only for type.
struct Options {
  enum class Mode { kDeep, kLight };

  Mode mode = Mode::kDeep;
  std::int64_t top_n_kernels = 0;
  std::filesystem::path artifacts_dir;
};

// Throws kUsage, naming the key and where its value came from.
Options options_of(const Config& config);

}  // namespace gpuwhy
