// SPDX-License-Identifier: Apache-2.0
//
// Records in the pages of a SQLite file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace llmprof {

// One value of a row. Text and blobs are views that are valid as long as the row.
struct SqlValue {
  enum class Kind : std::uint8_t { kNull, kInteger, kReal, kText, kBlob };

  Kind kind = Kind::kNull;
  std::int64_t integer = 0;
  double real = 0;
  std::string_view text;

  bool is_null() const { return kind == Kind::kNull; }
  // 0 for anything but an integer.
  std::int64_t as_integer() const { return kind == Kind::kInteger ? integer : 0; }
  std::string_view as_text() const { return kind == Kind::kText ? text : std::string_view{}; }
};

namespace sqlite_pages {

inline constexpr std::size_t kHeaderSize = 100;  // of the file, on its first page

// The caller checks that the bytes are there.
inline std::uint32_t big_endian(std::string_view bytes, std::size_t at, int size) {
  std::uint32_t value = 0;
  for (int i = 0; i < size; ++i) {
    value = (value << 8) | static_cast<unsigned char>(bytes[at + static_cast<std::size_t>(i)]);
  }
  return value;
}

// Page layout of a file. Everything is checked against the page and the file: false or an empty
// result means that the bytes violate the format.
struct Layout {
  std::string_view bytes;
  std::uint32_t page_size = 0;
  std::uint32_t usable = 0;  // page_size without the reserved tail
  std::uint32_t num_pages = 0;
};

// num_pages is 0 if the page size is impossible. The bytes include the file's header.
Layout layout_of(std::string_view bytes);

// Reads the record of cell `i` of a leaf page into `values` (by slot). `spill` receives a payload
// that overflows its page.
bool read_record(const Layout& layout, std::uint32_t page, std::uint32_t i,
                 const std::vector<int>& slot_of, int rowid_slot, SqlValue* values,
                 std::string& spill);

// As the page's header has it, unchecked.
std::uint32_t num_cells(const Layout& layout, std::uint32_t page);

}  // namespace sqlite_pages

}  // namespace llmprof
