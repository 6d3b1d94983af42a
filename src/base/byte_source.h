// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>

namespace llmprof {

// The bytes of a file from front to back, inflated on the way where they are gzip (also of several
// members, as parallel compressors write them). Throws kInput where the file cannot be opened or
// read, and for gzip that expands as no honest file does.
class ByteSource {
 public:
  explicit ByteSource(const std::filesystem::path& path);
  ~ByteSource();
  ByteSource(const ByteSource&) = delete;
  ByteSource& operator=(const ByteSource&) = delete;

  // Writes up to `size` bytes to `out` and tells how many; 0 only at the end.
  std::size_t read(char* out, std::size_t size);

  bool is_packed() const { return inflater_ != nullptr; }
  // After the end: whether gzip stopped in the middle, or its bytes made no sense.
  bool is_cut_off() const { return is_cut_off_; }
  // Bytes of the file, packed as they are, that were taken so far.
  std::uint64_t num_read() const { return num_read_; }

 private:
  struct Inflater;

  std::size_t read_file(char* out, std::size_t size);
  bool refill();
  std::size_t inflate_some(char* out, std::size_t size);
  void check_growth() const;

  std::filesystem::path path_;
  int file_ = -1;
  std::unique_ptr<Inflater> inflater_;  // null: the file is read as it is
  std::uint64_t num_read_ = 0;          // of the file
  std::uint64_t num_given_ = 0;         // inflated
  bool is_cut_off_ = false;
};

// What the first bytes of a gzip file hold, as far as they go; other bytes as they are. Never
// throws.
std::string inflated_head(std::string_view head);

}  // namespace llmprof
