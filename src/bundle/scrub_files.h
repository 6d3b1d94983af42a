// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "bundle/secret_values.h"

namespace llmprof {

// A log, line by line, in place and for its owner alone; lines of more than a mebibyte are left
// out. Throws kInput, kFailure.
void scrub_log(const std::filesystem::path& log, const SecretValues& values);

struct ScrubbedFile {
  enum class What { kChanged, kRemoved, kSkipped, kNotSearched };
  std::string path;  // relative to what was scrubbed
  What what = What::kChanged;
  std::string why;
};

struct ScrubResult {
  std::vector<ScrubbedFile> files;  // those that were not clean, or may not be
  std::size_t num_keys = 0;         // different secrets that were found
  std::vector<std::string> left;    // files that still hold one: must be empty
};

// Takes secrets out of a file or of all files below a folder, in place: keys by shape and name,
// `values`, and whatever was found in one file out of the others too. What cannot be rewritten and
// holds one is removed, and so are pages and traces that llmprof made of what held one. A manifest
// is renewed. At the end the bytes of every file are searched again. Links are not followed. Throws
// kInput, also where a file cannot be read, and kFailure.
ScrubResult scrub_files(const std::filesystem::path& root, const std::vector<std::string>& values);

}  // namespace llmprof
