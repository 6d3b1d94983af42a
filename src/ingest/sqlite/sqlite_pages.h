// SPDX-License-Identifier: Apache-2.0
//
// Records in the pages of a SQLite file.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace gpuwhy {

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
  bool is_whole_or_null() const { return kind == Kind::kInteger || kind == Kind::kNull; }
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

// Calls leaf(page, number of records) for the leaf pages of a table, in order. False if a page
// violates the format, or if there are more of them than the file has: pages that are used twice.
bool each_leaf(const Layout& layout, std::uint32_t root_page,
               const std::function<void(std::uint32_t, std::uint32_t)>& leaf);

// Whether a table's records fit into the file. A hostile one uses the same bytes many times.
bool records_fit(const Layout& layout, std::uint32_t root_page);

// Reads the records of one table's leaf pages, each from its first to its last. Not for several
// threads at once.
class RecordReader {
 public:
  // `slot_of`: by column of the table, its place among the values, or -1. `rowid_slot`: the place
  // of the row id itself, or -1. `spilled` counts the bytes of all readers of the table on other
  // pages than the record's own.
  RecordReader(const Layout& layout, const std::vector<int>& slot_of, int rowid_slot,
               std::size_t num_slots, std::atomic<std::uint64_t>& spilled)
      : layout_(layout),
        slot_of_(slot_of),
        rowid_slot_(rowid_slot),
        values_(num_slots),
        spilled_(spilled) {}

  // Reads the record of cell `i` into values(). False if the bytes violate the format.
  bool read(std::uint32_t page, std::uint32_t i);
  const SqlValue* values() const { return values_.data(); }
  // Whether they are all whole numbers or null.
  bool are_whole() const { return are_whole_; }

 private:
  static constexpr std::size_t kMostHeader = 64;  // of records that are planned, in bytes
  static constexpr std::size_t kMostPlans = 256;

  // A whole number: where it ends, counted from the start of the record, and how many bits of eight
  // bytes are not its own.
  struct NumberPlace {
    std::uint16_t slot = 0;
    std::uint16_t end = 0;
    std::uint8_t shift = 0;
  };
  // Any other value. Nulls and the constants 0 and 1 are in the header alone.
  struct OtherPlace {
    std::uint16_t slot = 0;
    std::uint16_t begin = 0;
    std::uint8_t type = 0;
  };
  // Where the wanted columns lie in records with one and the same header.
  struct Plan {
    std::array<std::uint64_t, kMostHeader / 8> header{};
    std::uint64_t size = 0;  // up to the end of the last wanted column
    std::vector<NumberPlace> numbers;
    std::vector<OtherPlace> constants;
    std::vector<OtherPlace> others;
  };

  bool read_payload(const char* payload, const char* end);
  void read_planned(const Plan& plan, const char* payload);
  const Plan* plan_of(const char* payload, std::size_t header_size);
  bool make_plan(const char* payload, std::size_t header_size, Plan& plan) const;

  Layout layout_;
  const std::vector<int>& slot_of_;
  int rowid_slot_;
  std::vector<SqlValue> values_;
  bool are_whole_ = true;
  std::atomic<std::uint64_t>& spilled_;
  std::uint64_t page_used_ = 0;  // by the records of this page so far
  std::string spill_;            // a payload that overflows its page
  std::vector<Plan> plans_;
  std::array<std::uint16_t, kMostPlans> plan_at_{};  // by hash of the header: from 1; 0: none
  const Plan* last_ = nullptr;                       // of the record before
};

// As the page's header has it, unchecked.
std::uint32_t num_cells(const Layout& layout, std::uint32_t page);

}  // namespace sqlite_pages

}  // namespace gpuwhy
