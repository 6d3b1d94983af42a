// SPDX-License-Identifier: Apache-2.0
//
// Bounds-checked reader of binary checkpoint headers.
//
// Headers precede gigabytes of weights and hold a quarter of a million strings to skip. So one
// block is kept in memory, and skipping only moves an offset: a seek per string would read the
// block again each time.
#include "model/bounded_file.h"

#include <algorithm>
#include <system_error>

#include <fmt/format.h>

#include "base/error.h"
#include "base/units.h"

namespace gpuwhy {
namespace {
constexpr std::size_t kBlockBytes = 256 * kKiB;
}

BoundedFile::BoundedFile(const std::filesystem::path& path)
    : name_(path.string()), block_(kBlockBytes) {
  std::error_code failure;
  if (!std::filesystem::is_regular_file(path, failure)) {
    throw Error(ErrorKind::kInput, fmt::format("{} is not a regular file", name_));
  }
  size_ = std::filesystem::file_size(path, failure);
  stream_.open(path, std::ios::binary);
  if (failure || !stream_) {
    throw Error(ErrorKind::kInput, fmt::format("cannot read {}", name_));
  }
}

void BoundedFile::fail(const std::string& what) const {
  throw Error(ErrorKind::kInput, fmt::format("{}: {} (at byte {})", name_, what, position_));
}

void BoundedFile::need(std::uint64_t num_bytes) const {
  if (num_bytes > left()) {
    fail(fmt::format("ends where {} more bytes should follow: cut off or damaged",
                     num_bytes - left()));
  }
}

// Loads the block that contains the current position.
void BoundedFile::fill() {
  if (position_ >= block_start_ && position_ < block_end_) {
    return;
  }
  stream_.clear();
  stream_.seekg(static_cast<std::streamoff>(position_));
  stream_.read(block_.data(), static_cast<std::streamsize>(block_.size()));
  block_start_ = position_;
  block_end_ = position_ + static_cast<std::uint64_t>(stream_.gcount());
  if (block_end_ == block_start_) {
    fail("cannot be read further");
  }
}

std::uint64_t BoundedFile::read_integer(std::size_t num_bytes) {
  need(num_bytes);
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < num_bytes; ++i) {
    fill();
    const auto byte = static_cast<unsigned char>(block_[position_ - block_start_]);
    value |= static_cast<std::uint64_t>(byte) << (8 * i);
    ++position_;
  }
  return value;
}

std::string BoundedFile::read_text(std::uint64_t num_bytes) {
  need(num_bytes);
  std::string text;
  text.reserve(num_bytes);
  while (text.size() < num_bytes) {
    fill();
    const std::uint64_t here =
        std::min<std::uint64_t>(block_end_ - position_, num_bytes - text.size());
    text.append(block_.data() + (position_ - block_start_), here);
    position_ += here;
  }
  return text;
}

void BoundedFile::skip(std::uint64_t num_bytes) {
  need(num_bytes);
  position_ += num_bytes;
}

}  // namespace gpuwhy
