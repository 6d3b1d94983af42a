// SPDX-License-Identifier: Apache-2.0
//
// Sliding window over a JSON text that is larger than memory.
//
// This file knows just enough of JSON to find where values end (brackets outside of strings), in
// constant memory and without recursion, so that nesting of any depth is only a number.
#include "ingest/kineto/json_buffer.h"

#include <cstring>

namespace gpuwhy {
namespace {

bool is_blank(char c) {
  return c == ' ' || c == '\n' || c == '\r' || c == '\t';
}

// Tracks brackets and strings, one character at a time.
class Nesting {
 public:
  // True for the character that closes the outermost bracket or string.
  bool add(char c) {
    if (is_escaped_) {
      is_escaped_ = false;
    } else if (is_string_) {
      is_escaped_ = c == '\\';
      is_string_ = c != '"';
      return !is_string_ && depth_ == 0;
    } else if (c == '"') {
      is_string_ = true;
    } else if (c == '{' || c == '[') {
      ++depth_;
    } else if (c == '}' || c == ']') {
      --depth_;
      return depth_ == 0;
    }
    return false;
  }

  // More brackets were closed than opened.
  bool is_beyond() const { return depth_ < 0; }

 private:
  std::int64_t depth_ = 0;
  bool is_string_ = false;
  bool is_escaped_ = false;
};

}  // namespace

JsonBuffer::JsonBuffer(GzipReader& source) : source_(source), buffer_(kSize + kPadding, '\0') {}

void JsonBuffer::consume(std::size_t count) {
  begin_ += count;
  offset_ += count;
}

// Moves the rest to the front first, and grows only if the window is full.
bool JsonBuffer::fill() {
  if (begin_ > 0) {
    std::memmove(buffer_.data(), buffer_.data() + begin_, end_ - begin_);
    end_ -= begin_;
    begin_ = 0;
  }
  if (end_ + kPadding == buffer_.size()) {
    if (buffer_.size() > kMostSize) {
      return false;
    }
    buffer_.resize(2 * end_ + kPadding);
  }
  // A source that returns few bytes at a time (gzip) is read until the window is full.
  const std::size_t before = end_;
  while (end_ + kPadding < buffer_.size()) {
    const std::size_t got = source_.read(buffer_.data() + end_, buffer_.size() - kPadding - end_);
    if (got == 0) {
      break;
    }
    end_ += got;
  }
  return end_ > before;
}

char JsonBuffer::peek() {
  do {
    while (begin_ < end_ && is_blank(buffer_[begin_])) {
      consume(1);
    }
  } while (begin_ == end_ && fill());
  return begin_ == end_ ? '\0' : buffer_[begin_];
}

bool JsonBuffer::take(char expected) {
  if (peek() != expected) {
    return false;
  }
  consume(1);
  return true;
}

std::string JsonBuffer::take_value(std::size_t limit) {
  std::string value;
  bool is_short = true;
  const auto keep = [&](char c) {
    is_short = is_short && value.size() < limit;
    if (is_short) {
      value += c;
    }
    consume(1);
  };
  const char first = peek();
  // Numbers, true, false and null end at a delimiter; everything else ends with its own bracket or
  // quote.
  const bool is_plain = first != '{' && first != '[' && first != '"';
  Nesting nesting;
  while (begin_ < end_ || fill()) {
    const char c = buffer_[begin_];
    if (is_plain) {
      if (c == ',' || c == '}' || c == ']' || is_blank(c)) {
        return is_short ? value : std::string();
      }
      keep(c);
      continue;
    }
    keep(c);
    if (nesting.add(c)) {
      return is_short ? value : std::string();
    }
  }
  return {};
}

std::size_t end_of_last_element(std::string_view text) {
  Nesting nesting;
  std::size_t end = 0;
  for (std::size_t i = 1; i < text.size(); ++i) {
    if (nesting.add(text[i])) {
      end = i + 1;
    }
    if (nesting.is_beyond()) {
      break;  // the array's own end
    }
  }
  return end;
}

}  // namespace gpuwhy
