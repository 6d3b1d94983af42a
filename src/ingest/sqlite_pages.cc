// SPDX-License-Identifier: Apache-2.0
//
// Direct reading of records from SQLite table pages.
//
// SQLite's virtual machine spends most of a full scan on moving single values into registers and
// out again. A table b-tree is simple: interior pages point to leaf pages, a leaf page contains
// records, a record is a header of types followed by values (sqlite.org/fileformat2.html, sections
// 1.6 and 2.1). So records are read in place.
#include "ingest/sqlite_pages.h"

#include <algorithm>
#include <array>
#include <cstring>

namespace llmprof {
namespace sqlite_pages {

Layout layout_of(std::string_view bytes) {
  Layout layout{bytes, big_endian(bytes, 16, 2), 0, 0};
  if (layout.page_size == 1) {
    layout.page_size = 65536;  // does not fit into the two bytes of the header
  }
  const bool is_power = layout.page_size >= 512 && (layout.page_size & (layout.page_size - 1)) == 0;
  const std::uint32_t reserved = big_endian(bytes, 20, 1);
  if (is_power && layout.page_size - reserved >= 480) {
    layout.usable = layout.page_size - reserved;
    layout.num_pages = static_cast<std::uint32_t>(
        std::min<std::size_t>(bytes.size() / layout.page_size, UINT32_MAX));
  }
  return layout;
}

std::uint32_t num_cells(const Layout& layout, std::uint32_t page) {
  const std::size_t start = static_cast<std::size_t>(page - 1) * layout.page_size;
  return big_endian(layout.bytes, start + (page == 1 ? kHeaderSize : 0) + 3, 2);
}

namespace {

// Up to nine bytes of seven bits each, the ninth with eight. False at `end`.
bool read_long_varint(const char*& at, const char* end, std::uint64_t& value) {
  value = 0;
  for (int i = 0; i < 9; ++i) {
    if (at == end) {
      return false;
    }
    const auto byte = static_cast<unsigned char>(*at++);
    if (i == 8) {
      value = (value << 8) | byte;
      return true;
    }
    value = (value << 7) | (byte & 0x7f);
    if (byte < 0x80) {
      return true;
    }
  }
  return true;
}

inline bool read_varint(const char*& at, const char* end, std::uint64_t& value) {
  if (at != end && static_cast<unsigned char>(*at) < 0x80) {
    value = static_cast<unsigned char>(*at++);  // nearly all are this short
    return true;
  }
  return read_long_varint(at, end, value);
}

template <typename Int>
inline Int load_big_endian(const char* at) {
  Int value;
  std::memcpy(&value, at, sizeof(value));
  if constexpr (sizeof(Int) == 2) {
    return static_cast<Int>(__builtin_bswap16(static_cast<std::uint16_t>(value)));
  } else if constexpr (sizeof(Int) == 4) {
    return static_cast<Int>(__builtin_bswap32(static_cast<std::uint32_t>(value)));
  } else {
    return static_cast<Int>(__builtin_bswap64(static_cast<std::uint64_t>(value)));
  }
}

// The size of a value by its type: section 2.1 of the file format. Types 10 and 11 are not used in
// files.
constexpr std::uint64_t kNoSuchType = UINT64_MAX;
constexpr std::uint64_t size_of_type(std::uint64_t type) {
  constexpr std::array<std::uint64_t, 12> kSizes = {0, 1, 2, 3, 4,           6,
                                                    8, 8, 0, 0, kNoSuchType, kNoSuchType};
  return type < kSizes.size() ? kSizes[type] : (type - 12) / 2;
}

// Serial types: 1 to 6 are integers of 1, 2, 3, 4, 6 and 8 bytes, 8 and 9 the constants 0 and 1.
inline void decode(std::uint64_t type, const char* at, std::uint64_t size, SqlValue& value) {
  using Kind = SqlValue::Kind;
  value.kind = Kind::kInteger;
  switch (type) {
    case 0:
      value.kind = Kind::kNull;
      return;
    case 1:
      value.integer = (static_cast<unsigned char>(*at) ^ 0x80) - 0x80;  // sign extended
      return;
    case 2:
      value.integer = load_big_endian<std::int16_t>(at);
      return;
    case 3:
      value.integer = std::int64_t{(static_cast<unsigned char>(at[0]) ^ 0x80) - 0x80} * 65536 +
                      load_big_endian<std::uint16_t>(at + 1);
      return;
    case 4:
      value.integer = load_big_endian<std::int32_t>(at);
      return;
    case 5:
      value.integer = static_cast<std::int64_t>(load_big_endian<std::int16_t>(at)) * 4294967296 +
                      load_big_endian<std::uint32_t>(at + 2);
      return;
    case 6:
      value.integer = load_big_endian<std::int64_t>(at);
      return;
    case 7: {
      value.kind = Kind::kReal;
      const auto bits = load_big_endian<std::uint64_t>(at);
      std::memcpy(&value.real, &bits, sizeof(value.real));
      return;
    }
    case 8:
    case 9:
      value.integer = static_cast<std::int64_t>(type - 8);
      return;
    default:
      value.kind = type % 2 == 0 ? Kind::kBlob : Kind::kText;
      value.text = {at, size};
  }
}

// The same for a type of one byte. A type that does not exist is larger than any record.
constexpr std::array<std::uint32_t, 128> kSizesOfByte = [] {
  std::array<std::uint32_t, 128> sizes{};
  for (std::uint64_t type = 0; type < sizes.size(); ++type) {
    const std::uint64_t size = size_of_type(type);
    sizes[type] = size == kNoSuchType ? 1U << 30U : static_cast<std::uint32_t>(size);
  }
  return sizes;
}();

bool has_only_short(const char* types, std::size_t count) {
  std::uint64_t bits = 0;
  std::size_t i = 0;
  for (; i + sizeof(bits) <= count; i += sizeof(bits)) {
    std::uint64_t word = 0;
    std::memcpy(&word, types + i, sizeof(word));
    bits |= word;
  }
  for (; i < count; ++i) {
    bits |= static_cast<unsigned char>(types[i]);
  }
  return (bits & 0x8080808080808080U) == 0;
}

// Decodes columns whose types are of one byte each: nearly all of numbers. Columns that nobody
// wants cost an addition.
bool read_short_types(const char* types, std::string_view body, const std::vector<int>& slot_of,
                      SqlValue* values) {
  std::size_t at = 0;
  for (std::size_t i = 0; i < slot_of.size(); ++i) {
    const auto type = static_cast<unsigned char>(types[i]);
    const std::size_t size = kSizesOfByte[type];
    if (slot_of[i] >= 0) {
      if (at + size > body.size()) {
        return false;
      }
      decode(type, body.data() + at, size, values[slot_of[i]]);
    }
    at += size;
  }
  return at <= body.size();
}

// Decodes columns with types of any length.
bool read_types(const char* types, const char* types_end, std::string_view body,
                const std::vector<int>& slot_of, SqlValue* values) {
  std::size_t at = 0;
  for (const int slot : slot_of) {
    if (types >= types_end) {
      if (slot >= 0) {
        values[slot].kind = SqlValue::Kind::kNull;  // a column added after this record was written
      }
      continue;
    }
    std::uint64_t type = 0;
    if (!read_varint(types, types_end, type)) {
      return false;
    }
    const std::uint64_t size = size_of_type(type);
    if (size > body.size() - at) {
      return false;
    }
    if (slot >= 0) {
      decode(type, body.data() + at, size, values[slot]);
    }
    at += size;
  }
  return true;
}

// Collects the payload of a cell that continues on overflow pages.
bool gather(const Layout& layout, std::string_view local, std::uint32_t next,
            std::uint64_t payload_size, std::string& spill) {
  if (payload_size > layout.bytes.size()) {
    return false;
  }
  spill.assign(local);
  while (spill.size() < payload_size) {
    if (next == 0 || next > layout.num_pages) {
      return false;
    }
    const std::size_t start = static_cast<std::size_t>(next - 1) * layout.page_size;
    const std::size_t take =
        std::min<std::uint64_t>(layout.usable - 4, payload_size - spill.size());
    spill.append(layout.bytes.substr(start + 4, take));
    next = big_endian(layout.bytes, start, 4);
  }
  return true;
}

}  // namespace

bool read_record(const Layout& layout, std::uint32_t page, std::uint32_t i,
                 const std::vector<int>& slot_of, int rowid_slot, SqlValue* values,
                 std::string& spill) {
  const std::size_t start = static_cast<std::size_t>(page - 1) * layout.page_size;
  const std::size_t header = start + (page == 1 ? kHeaderSize : 0);
  const std::uint32_t offset =
      big_endian(layout.bytes, header + 8 + 2 * static_cast<std::size_t>(i), 2);
  const char* const page_end = layout.bytes.data() + start + layout.usable;
  if (offset >= layout.usable) {
    return false;
  }
  const char* at = layout.bytes.data() + start + offset;
  std::uint64_t payload_size = 0;
  std::uint64_t rowid = 0;
  if (!read_varint(at, page_end, payload_size) || !read_varint(at, page_end, rowid)) {
    return false;
  }
  const char* payload = at;
  const char* end = nullptr;
  // The part of a payload that stays on the page: section 1.6 of the file format.
  const std::uint64_t most_local = layout.usable - 35;
  if (payload_size <= most_local) {
    end = payload + payload_size;
    if (payload_size > static_cast<std::uint64_t>(page_end - payload)) {
      return false;
    }
  } else {
    const std::uint64_t least_local = (layout.usable - 12) * 32 / 255 - 23;
    const std::uint64_t fitting = least_local + (payload_size - least_local) % (layout.usable - 4);
    const std::uint64_t local = fitting <= most_local ? fitting : least_local;
    if (local + 4 > static_cast<std::uint64_t>(page_end - payload)) {
      return false;
    }
    const std::string_view here(payload, local);
    const std::uint32_t next = big_endian({payload + local, 4}, 0, 4);
    if (!gather(layout, here, next, payload_size, spill)) {
      return false;
    }
    payload = spill.data();
    end = payload + spill.size();
  }
  const char* types = payload;
  std::uint64_t header_size = 0;
  if (!read_varint(types, end, header_size) ||
      header_size > static_cast<std::uint64_t>(end - payload)) {
    return false;
  }
  const char* const types_end = payload + header_size;
  const char* body = types_end;
  // A damaged header may end before its first type.
  if (types <= types_end && static_cast<std::size_t>(types_end - types) >= slot_of.size() &&
      has_only_short(types, slot_of.size())) {
    if (!read_short_types(types, {body, static_cast<std::size_t>(end - body)}, slot_of, values)) {
      return false;
    }
  } else if (!read_types(types, types_end, {body, static_cast<std::size_t>(end - body)}, slot_of,
                         values)) {
    return false;
  }
  // Last: a column that stands for the rowid is stored as null.
  if (rowid_slot >= 0) {
    values[rowid_slot].kind = SqlValue::Kind::kInteger;
    values[rowid_slot].integer = static_cast<std::int64_t>(rowid);
  }
  return true;
}

}  // namespace sqlite_pages

}  // namespace llmprof
