// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "base/temporary_file.h"
#include "base/units.h"

namespace llmprof {

// The whole file as bytes. Throws kInput when it is missing, not a regular file, or larger than
// `limit_bytes`: text that people write is small, and a mistyped path must not fill the memory.
std::string read_file(const std::filesystem::path& path, std::uint64_t limit_bytes = 16 * kMiB);

// Contents of a /proc-like file (no size, may vanish), or empty.
std::string read_pseudo_file(const std::filesystem::path& path);

// `path`, made absolute, or its nearest parent that exists.
std::filesystem::path nearest_existing(std::filesystem::path path);

// Free bytes of the file system that a path is on, or will be once it exists.
std::optional<std::uint64_t> free_bytes(const std::filesystem::path& path);

// Who may read and write a file, as open() has it: for one that takes its place. Throws kInput.
unsigned mode_of(const std::filesystem::path& path);

// Writes under a temporary name in the same directory, then renames: readers see the old file or
// the new one, never a part. A failure leaves no temporary behind. Throws kFailure.
void write_file(const std::filesystem::path& path, std::string_view contents, unsigned mode = 0666);

// The same for a file too large for memory: written piece by piece under a temporary name, and
// there under its own only after commit(). All of it may throw kFailure.
class FileWriter {
 public:
  // `mode` as open() has it. Without commit() nothing is left.
  explicit FileWriter(const std::filesystem::path& path, unsigned mode = 0666);

  void write(std::string_view bytes);

  // What was written so far. Bytes behind the limit are counted here, but not kept.
  std::uint64_t size_bytes() const { return size_bytes_; }
  void set_limit(std::uint64_t limit_bytes) { limit_bytes_ = limit_bytes; }

  // Forgets what was written behind `size_bytes`, which is not more than the limit.
  void cut_back(std::uint64_t size_bytes);

  void commit();

 private:
  void flush();

  TemporaryFile file_;
  std::string buffer_;
  std::uint64_t size_bytes_ = 0;
  std::uint64_t limit_bytes_ = UINT64_MAX;
};

}  // namespace llmprof
