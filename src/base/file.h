// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/temporary_file.h"
#include "base/units.h"

namespace gpuwhy {

// The whole file as bytes. Throws kInput if it is missing, not a regular file, or larger than
// `limit_bytes`: text written by people is small, and a mistyped path must not fill the memory.
std::string read_file(const std::filesystem::path& path, std::uint64_t limit_bytes = 16 * kMiB);

// The contents of a file in /proc or /sys (no size, may vanish); empty if unreadable.
std::string read_pseudo_file(const std::filesystem::path& path);

// `path` made absolute, or its nearest existing parent.
std::filesystem::path nearest_existing(std::filesystem::path path);

// Free bytes of the file system that a path is on, or will be once it exists.
std::optional<std::uint64_t> free_bytes(const std::filesystem::path& path);

// Permission bits of a file, for the file that replaces it. Throws kInput.
unsigned mode_of(const std::filesystem::path& path);

// Writes to a temporary name in the same directory, then renames: readers see the old file or the
// new one, never a partial one. A failure leaves no temporary behind. Throws kFailure.
void write_file(const std::filesystem::path& path, std::string_view contents, unsigned mode = 0666);

// The same for several files of a folder, by name: a disk confirms them together as quickly as one.
// None is visible before all are written.
void write_files(const std::filesystem::path& folder,
                 const std::vector<std::pair<std::string, std::string>>& files);

// The same for a file too large for memory: written in pieces under a temporary name, renamed by
// commit(). Every function may throw kFailure.
class FileWriter {
 public:
  // `mode` as for open(). Without commit() no file is left.
  explicit FileWriter(const std::filesystem::path& path, unsigned mode = 0666);

  void write(std::string_view bytes);

  // Bytes written so far, including those beyond the limit, which are counted but not stored.
  std::uint64_t size_bytes() const { return size_bytes_; }
  void set_limit(std::uint64_t limit_bytes) { limit_bytes_ = limit_bytes; }

  // Truncates to `size_bytes`, which must not exceed the limit.
  void cut_back(std::uint64_t size_bytes);

  // Makes the file visible under its own name.
  void commit();

 private:
  void flush();

  TemporaryFile file_;
  std::string buffer_;
  std::uint64_t size_bytes_ = 0;
  std::uint64_t limit_bytes_ = UINT64_MAX;
};

}  // namespace gpuwhy
