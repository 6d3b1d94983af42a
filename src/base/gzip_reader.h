// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>

namespace gpuwhy {

// The bytes of a file from start to end. Gzip is inflated on the fly, including files of several
// members as parallel compressors write them. Throws kInput if the file cannot be opened or read,
// and if gzip data expands implausibly.
class GzipReader {
 public:
  explicit GzipReader(const std::filesystem::path& path);
  ~GzipReader();
  GzipReader(const GzipReader&) = delete;
  GzipReader& operator=(const GzipReader&) = delete;

  // Writes up to `size` bytes to `out` and returns how many; 0 only at the end.
  std::size_t read(char* out, std::size_t size);

  // Whether the file is gzip.
  bool is_packed() const { return inflater_ != nullptr; }
  // Valid after the end: whether the gzip stream was truncated or damaged.
  bool is_cut_off() const { return is_cut_off_; }
  // Bytes of the file read so far, before inflating.
  std::uint64_t num_read() const { return num_read_; }

 private:
  struct Inflater;

  std::size_t read_file(char* out, std::size_t size);
  bool refill();
  std::size_t inflate_some(char* out, std::size_t size);
  void check_growth() const;

  std::filesystem::path path_;
  int file_ = -1;
  std::unique_ptr<Inflater> inflater_;  // null: not compressed
  std::uint64_t num_read_ = 0;          // of the file
  std::uint64_t num_given_ = 0;         // inflated
  bool is_cut_off_ = false;
};

// Whatever the first bytes of a gzip file inflate to; other bytes are returned unchanged. Never
// throws.
std::string inflated_head(std::string_view head);

}  // namespace gpuwhy
