// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

namespace gpuwhy {

// A little-endian binary file, read from start to end. Every length in it is checked against the
// bytes that are left. Throws kInput, naming the file.
class BoundedFile {
 public:
  explicit BoundedFile(const std::filesystem::path& path);

  std::uint64_t size() const { return size_; }
  std::uint64_t left() const { return size_ - position_; }

  std::uint64_t read_integer(std::size_t num_bytes);  // up to eight
  std::string read_text(std::uint64_t num_bytes);     // the caller has bounded it
  void skip(std::uint64_t num_bytes);

  [[noreturn]] void fail(const std::string& what) const;

 private:
  void need(std::uint64_t num_bytes) const;
  void fill();

  std::string name_;
  std::ifstream stream_;
  std::uint64_t size_ = 0;
  std::uint64_t position_ = 0;
  std::vector<char> block_;  // the part of the file that is in memory
  std::uint64_t block_start_ = 0;
  std::uint64_t block_end_ = 0;
};

}  // namespace gpuwhy
