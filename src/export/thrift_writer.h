// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace gpuwhy {

// Appends `value` in groups of seven bits, the lowest first.
inline void append_varint(std::uint64_t value, std::string& out) {
  constexpr std::uint64_t kMore = 0x80;
  while (value >= kMore) {
    out.push_back(static_cast<char>((value & (kMore - 1)) | kMore));
    value >>= 7;
  }
  out.push_back(static_cast<char>(value));
}

// Small numbers of either sign as small numbers without one.
inline std::uint64_t zigzag(std::int64_t value) {
  return (static_cast<std::uint64_t>(value) << 1) ^ static_cast<std::uint64_t>(value >> 63);
}

// Structs in Thrift's compact protocol, as the footer of a Parquet file has them. The caller
// writes fields in the order of their numbers, and ends each struct it began.
class ThriftWriter {
 public:
  enum Type : std::uint8_t {
    kTrue = 1,
    kFalse = 2,
    kI32 = 5,
    kI64 = 6,
    kText = 8,
    kList = 9,
    kStruct = 12
  };

  void flag(int field, bool value) { head(field, value ? kTrue : kFalse); }
  void i32(int field, std::int32_t value) { whole(field, kI32, value); }
  void i64(int field, std::int64_t value) { whole(field, kI64, value); }
  void text(int field, std::string_view value) {
    head(field, kText);
    element(value);
  }

  // A list of `size` elements follows: each by element(), or begin_element() and end().
  void list(int field, Type type, std::size_t size) {
    constexpr std::size_t kShort = 15;
    head(field, kList);
    out_.push_back(static_cast<char>((size < kShort ? size << 4 : 0xF0) | type));
    if (size >= kShort) {
      append_varint(size, out_);
    }
  }
  void element(std::int32_t value) { append_varint(zigzag(value), out_); }
  void element(std::string_view value) {
    append_varint(value.size(), out_);
    out_ += value;
  }
  void begin_element() { last_fields_.push_back(0); }
  void begin(int field) {
    head(field, kStruct);
    last_fields_.push_back(0);
  }
  void end() {
    out_.push_back(0);
    last_fields_.pop_back();
  }

  // The bytes, with the outermost struct ended.
  std::string finish() {
    end();
    return std::move(out_);
  }

 private:
  void head(int field, Type type) {
    const int step = field - last_fields_.back();
    last_fields_.back() = field;
    if (step > 0 && step <= 15) {
      out_.push_back(static_cast<char>((static_cast<unsigned>(step) << 4) | type));
    } else {
      out_.push_back(static_cast<char>(type));
      append_varint(zigzag(field), out_);
    }
  }
  void whole(int field, Type type, std::int64_t value) {
    head(field, type);
    append_varint(zigzag(value), out_);
  }

  std::string out_;
  std::vector<int> last_fields_ = {0};
};

}  // namespace gpuwhy
