// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/byte_source.h"

namespace llmprof {

// A part of a long JSON text that moves forward over it. What is consumed makes room for what
// follows; the room grows only where somebody asks for more without consuming any.
class JsonWindow {
 public:
  static constexpr std::size_t kSize = 1 << 20;       // at first
  static constexpr std::size_t kMostSize = 64 << 20;  // one event is never so long
  static constexpr std::size_t kPadding = 64;  // readable behind the text, as vector code wants it

  explicit JsonWindow(ByteSource& source);

  // What was read and not consumed. Whoever parses it may write into it, and into one byte more.
  char* data() { return buffer_.data() + begin_; }
  std::size_t size() const { return end_ - begin_; }
  std::string_view text() const { return {buffer_.data() + begin_, end_ - begin_}; }
  // Bytes of memory behind data().
  std::size_t capacity() const { return buffer_.size() - begin_; }
  // Where text() begins, counted from the start of the whole text.
  std::uint64_t offset() const { return offset_; }

  void consume(std::size_t count);
  // Adds text; false where there is no more, or no room for more.
  bool fill();

  // The next character that is no blank, not consumed; '\0' at the end.
  char peek();
  // Consumes the next character that is no blank if it is this one.
  bool take(char expected);
  // Consumes one JSON value, however long, and gives its text; an empty one where it is longer than
  // `limit` or the text ends inside it.
  std::string take_value(std::size_t limit);

 private:
  ByteSource& source_;
  std::string buffer_;
  std::size_t begin_ = 0;
  std::size_t end_ = 0;
  std::uint64_t offset_ = 0;
};

// Where the last whole element of a JSON array ends in `text`, which begins with '[' and stops
// somewhere; 0 where none does.
std::size_t end_of_last_element(std::string_view text);

}  // namespace llmprof
