// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/gzip_reader.h"

namespace gpuwhy {

// A window that moves forward over a long JSON text. Consumed text makes room for more; the window
// grows only if more is requested without consuming.
class JsonBuffer {
 public:
  static constexpr std::size_t kSize = 1 << 20;       // initially
  static constexpr std::size_t kMostSize = 64 << 20;  // no event is this long
  static constexpr std::size_t kPadding = 64;         // readable bytes after the text, for SIMD

  explicit JsonBuffer(GzipReader& source);

  // Text that was read and not consumed. A parser may write into it, and into one byte after it.
  char* data() { return buffer_.data() + begin_; }
  std::size_t size() const { return end_ - begin_; }
  std::string_view text() const { return {buffer_.data() + begin_, end_ - begin_}; }
  // Allocated bytes from data() on.
  std::size_t capacity() const { return buffer_.size() - begin_; }
  // The position of text() in the whole text.
  std::uint64_t offset() const { return offset_; }

  void consume(std::size_t count);
  // Adds text; false at the end, or if the window cannot grow.
  bool fill();

  // The next non-blank character, not consumed; '\0' at the end.
  char peek();
  // Consumes the next non-blank character if it is this one.
  bool take(char expected);
  // Consumes one JSON value of any length and returns its text; empty if it is longer than `limit`
  // or the text ends inside it.
  std::string take_value(std::size_t limit);

 private:
  GzipReader& source_;
  std::string buffer_;
  std::size_t begin_ = 0;
  std::size_t end_ = 0;
  std::uint64_t offset_ = 0;
};

// The end of the last complete element of a JSON array in `text`, which begins with '[' and may
// stop anywhere; 0 if there is none.
std::size_t end_of_last_element(std::string_view text);

}  // namespace gpuwhy
