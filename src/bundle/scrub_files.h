// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "bundle/secret_values.h"

namespace gpuwhy {

// Scrubs a log line by line, in place, readable only by its owner. Lines of more than 1 MiB are
// dropped. `is_over` is asked several times per second: once it says yes, the rest of the log is
// left out, and a last line says so. Returns the bytes that were left out. Throws kInput, kFailure.
std::uint64_t scrub_log(const std::filesystem::path& log, const SecretValues& values,
                        const std::function<bool()>& is_over);

// What happened to one file, and why.
struct ScrubbedFile {
  enum class What { kChanged, kRemoved, kSkipped, kNotSearched };
  std::string path;  // relative to what was scrubbed
  What what = What::kChanged;
  std::string why;
  std::vector<std::pair<std::string, std::int64_t>> places = {};  // of a dry run: by rule
};

// Outcome of scrubbing.
struct ScrubResult {
  std::vector<ScrubbedFile> files;  // those that were changed, removed or not checked
  std::size_t num_keys = 0;         // different secrets that were found
  std::vector<std::string> left;    // files that still contain one: must be empty
  SecretValues secrets = {};        // those that were found, and those that were given
};

// Removes secrets from a file or from all files in a folder, in place: keys by format and name,
// `values`, and everything found in one file from the others too. Files that contain a secret and
// cannot be rewritten are removed, and so are pages and traces that gpuwhy generated from such
// files. A manifest is updated. Finally the bytes of every file are searched again. Links are not
// followed. Throws kInput, also if a file cannot be read, and kFailure.
ScrubResult scrub_files(const std::filesystem::path& root, const std::vector<std::string>& values);

// What scrub_files() would do, found by doing it to a copy in `scratch`, which is deleted. Counts
// the places in each file by the rule that names the secret.
ScrubResult dry_scrub_files(const std::filesystem::path& root,
                            const std::vector<std::string>& values,
                            const std::filesystem::path& scratch);

}  // namespace gpuwhy
