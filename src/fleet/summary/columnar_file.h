// SPDX-License-Identifier: Apache-2.0
//
// Tables of integers and texts in one small self-describing file.
//
//   "gpuwhy" 0x1a 0x0a   magic, 8 bytes
//   u32, little endian  CRC-32 of all that follows
//   varint              version of this container (kColumnarFileVersion)
//   text                kind of file, "rank" or "fleet"
//   varint, texts       the text table: how many, then each
//   varint, columns     how many, then each: text "table.column", type byte, number of values,
//                       number of bytes, bytes
//
// A text is a varint length and its bytes; a varint has seven bits per byte, lowest first. Types:
// 'u' varints, 's' varints that index the text table. A reader skips unknown columns and uses
// defaults for missing ones, so fields can come and go without a new version.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace gpuwhy {

inline constexpr std::uint64_t kColumnarFileVersion = 1;

// Recomputes the checksum of a file whose body was changed: for tests.
void with_checksum(std::string& file);

// Collects columns and writes them at once.
class ColumnarWriter {
 public:
  // Columns are written in the order in which they were added.
  void numbers(std::string_view column, std::span<const std::int64_t> values);  // below 0: 0
  void texts(std::string_view column, std::span<const std::string_view> values);

  // The same columns with the same values give the same bytes.
  std::string finish(std::string_view kind) const;

 private:
  struct Pending {
    std::string name;
    char type;
    std::vector<std::int64_t> values;  // of texts: the order in which they came
  };
  std::vector<Pending> columns_;
  std::map<std::string, std::int64_t, std::less<>> texts_;
};

// Views into `bytes`, which must outlive this object.
class ColumnarFile {
 public:
  // Throws kInput for anything but a complete, undamaged file. Memory is proportional to `bytes`.
  explicit ColumnarFile(std::string_view bytes);

  std::string_view kind() const { return kind_; }
  const std::vector<std::string_view>& texts() const { return texts_; }
  std::uint32_t checksum() const { return checksum_; }

  // Empty if the file has no such column. A value beyond 63 bits, or an index beyond the text
  // table, throws kInput.
  std::size_t size_of(std::string_view column) const;
  std::vector<std::int64_t> numbers(std::string_view column) const;
  std::vector<std::uint32_t> text_ids(std::string_view column) const;

 private:
  struct Stored {
    char type;
    std::uint64_t num_values;
    std::string_view bytes;
  };
  const Stored* find(std::string_view column) const;
  // Values below `end`; `beyond` says what others are.
  template <typename T>
  std::vector<T> decoded(std::string_view column, char type, std::uint64_t end,
                         const char* beyond) const;

  std::uint32_t checksum_ = 0;
  std::string_view kind_;
  std::vector<std::string_view> texts_;
  std::vector<std::pair<std::string_view, Stored>> columns_;
};

}  // namespace gpuwhy
