// SPDX-License-Identifier: Apache-2.0
//
// Encoding of numbers and texts: little endian, lengths as varints. Used by summary files and by
// RowBinary, ClickHouse's binary row format.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace gpuwhy {

inline void put_varint(std::string& out, std::uint64_t value) {
  while (value >= 0x80) {
    out += static_cast<char>(value | 0x80);
    value >>= 7;
  }
  out += static_cast<char>(value);
}

inline void put_text(std::string& out, std::string_view text) {
  put_varint(out, text.size());
  out += text;
}

inline void put_number(std::string& out, std::uint64_t value, int num_bytes) {
  std::array<char, 8> bytes{};
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    bytes[i] = static_cast<char>(value >> (8 * i));
  }
  // At once: a check of the capacity per byte took most of the time of a row.
  out.append(bytes.data(), static_cast<std::size_t>(num_bytes));
}

inline void put_numbers(std::string& out, const std::vector<std::uint64_t>& values, int num_bytes) {
  put_varint(out, values.size());
  for (const std::uint64_t value : values) {
    put_number(out, value, num_bytes);
  }
}

}  // namespace gpuwhy
