// SPDX-License-Identifier: Apache-2.0
//
// Direct reading of records from SQLite table pages.
//
// SQLite's virtual machine spends most of a full scan on moving single values into registers and
// out again. A table b-tree is simple: interior pages point to leaf pages, a leaf page contains
// records, a record is a header of types followed by values (sqlite.org/fileformat2.html, sections
// 1.6 and 2.1). So records are read in place.
//
// The header says where each column lies, and must be added up from its beginning. But rows of one
// table mostly have one of few headers: numbers of the same sizes. So what a header says is worked
// out once and kept, and a record with a known header costs a few instructions per wanted column.
//
// A hostile file may use the same bytes many times: interior pages that share leaves, pointers to
// the same record, records that share overflow pages. A megabyte of file is then terabytes of rows.
// No file that SQLite wrote has more pages in a table, more bytes of records in a page, or more
// overflow in a table than its size allows, so that is where reading ends.
#include "ingest/sqlite/sqlite_pages.h"

#include <algorithm>
#include <array>
#include <cstring>

namespace gpuwhy {
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

// Decodes columns one after the other, with types of any length.
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

bool each_leaf(const Layout& layout, std::uint32_t root_page,
               const std::function<void(std::uint32_t, std::uint32_t)>& leaf) {
  constexpr int kInterior = 5;
  constexpr int kLeaf = 13;
  constexpr int kDeepest = 20;           // SQLite's own limit
  constexpr std::size_t kLeastCell = 4;  // of a record
  constexpr std::size_t kPointer = 2;    // to a record
  std::size_t visited = 0;
  const std::function<bool(std::uint32_t, int)> visit = [&](std::uint32_t page, int depth) {
    // Limits on depth and on visited pages end the walk in a b-tree with cycles.
    if (page == 0 || page > layout.num_pages || depth > kDeepest || ++visited > layout.num_pages) {
      return false;
    }
    const std::size_t start = static_cast<std::size_t>(page - 1) * layout.page_size;
    const std::size_t header = start + (page == 1 ? kHeaderSize : 0);
    const std::uint32_t type = big_endian(layout.bytes, header, 1);
    const std::size_t cells = big_endian(layout.bytes, header + 3, 2);
    if (type == kLeaf) {
      if (header + 8 + (kPointer + kLeastCell) * cells > start + layout.usable) {
        return false;
      }
      leaf(page, static_cast<std::uint32_t>(cells));
      return true;
    }
    if (type != kInterior || header + 12 + kPointer * cells > start + layout.usable) {
      return false;
    }
    for (std::size_t i = 0; i < cells; ++i) {
      const std::uint32_t offset = big_endian(layout.bytes, header + 12 + kPointer * i, 2);
      if (offset + 4 > layout.usable ||
          !visit(big_endian(layout.bytes, start + offset, 4), depth + 1)) {
        return false;
      }
    }
    return visit(big_endian(layout.bytes, header + 8, 4), depth + 1);
  };
  return visit(root_page, 0);
}

bool records_fit(const Layout& layout, std::uint32_t root_page) {
  std::uint64_t sum = 0;
  bool are_valid = true;
  const bool is_tree =
      each_leaf(layout, root_page, [&](std::uint32_t page, std::uint32_t num_records) {
        const std::size_t start = static_cast<std::size_t>(page - 1) * layout.page_size;
        const std::size_t pointers = start + (page == 1 ? kHeaderSize : 0) + 8;
        for (std::size_t i = 0; i < num_records && are_valid; ++i) {
          const std::uint32_t offset = big_endian(layout.bytes, pointers + 2 * i, 2);
          const char* at = layout.bytes.data() + start + std::min(offset, layout.usable);
          std::uint64_t size = 0;
          are_valid = read_varint(at, layout.bytes.data() + start + layout.usable, size) &&
                      size <= layout.bytes.size() - sum;
          sum += are_valid ? size : 0;
        }
      });
  return is_tree && are_valid;
}

bool RecordReader::make_plan(const char* payload, std::size_t header_size, Plan& plan) const {
  plan.numbers.clear();
  plan.constants.clear();
  plan.others.clear();
  if (header_size - 1 < slot_of_.size()) {
    return false;  // some types are absent
  }
  std::size_t at = header_size;
  for (std::size_t i = 0; i < slot_of_.size(); ++i) {
    const auto type = static_cast<unsigned char>(payload[1 + i]);
    const std::uint64_t size = size_of_type(type);
    if (type >= 0x80 || size == kNoSuchType) {
      return false;
    }
    if (slot_of_[i] >= 0) {
      const auto slot = static_cast<std::uint16_t>(slot_of_[i]);
      if (type >= 1 && type <= 6) {
        plan.numbers.push_back({slot, static_cast<std::uint16_t>(at + size),
                                static_cast<std::uint8_t>(64 - 8 * size)});
      } else {
        std::vector<OtherPlace>& places = size == 0 && type < 12 ? plan.constants : plan.others;
        places.push_back({slot, static_cast<std::uint16_t>(at), type});
      }
    }
    at += size;
  }
  plan.size = at;
  return true;
}

// The plan for the header at the start of a record; null if it is not planned. kMostHeader bytes
// can be read there. The first byte is the size of the header, so headers with equal words are
// equally long.
const RecordReader::Plan* RecordReader::plan_of(const char* payload, std::size_t header_size) {
  std::array<std::uint64_t, kMostHeader / 8> header;
  const std::size_t num_words = (header_size + 7) / 8;
  std::memcpy(header.data(), payload, kMostHeader);
  if (header_size % 8 != 0) {
    header[num_words - 1] &= (std::uint64_t{1} << (8 * (header_size % 8))) - 1;  // without values
  }
  const auto fits = [&](const Plan& plan) {
    std::size_t i = 0;
    while (i < num_words && plan.header[i] == header[i]) {
      ++i;
    }
    return i == num_words;
  };
  if (last_ != nullptr && fits(*last_)) {
    return last_;
  }
  std::uint64_t hash = 0;
  for (std::size_t i = 0; i < num_words; ++i) {
    hash = (hash ^ header[i]) * 0x9e3779b97f4a7c15;  // 2^64 over the golden ratio
  }
  static_assert(kMostPlans == 256);
  std::uint16_t& place = plan_at_[hash >> 56];
  if (place != 0 && fits(plans_[place - 1U])) {
    return &plans_[place - 1U];
  }
  last_ = nullptr;
  if (place == 0) {
    plans_.emplace_back();
    place = static_cast<std::uint16_t>(plans_.size());
  }
  Plan& plan = plans_[place - 1U];
  plan.header[0] = 0;  // no header has the size 0
  if (!make_plan(payload, header_size, plan)) {
    return nullptr;
  }
  std::copy_n(header.begin(), num_words, plan.header.begin());
  return &plan;
}

// Numbers are loaded as the eight bytes that end with them. Something precedes every record: the
// header of the file is longer than that.
void RecordReader::read_planned(const Plan& plan, const char* payload) {
  SqlValue* const values = values_.data();
  for (const NumberPlace& place : plan.numbers) {
    const auto word = load_big_endian<std::uint64_t>(payload + place.end - 8);
    values[place.slot].kind = SqlValue::Kind::kInteger;
    values[place.slot].integer =
        static_cast<std::int64_t>(word << place.shift) >> place.shift;  // sign extended
  }
  if (&plan != last_) {
    for (const OtherPlace& place : plan.constants) {
      decode(place.type, nullptr, 0, values[place.slot]);
    }
    last_ = &plan;
  }
  for (const OtherPlace& place : plan.others) {
    decode(place.type, payload + place.begin, size_of_type(place.type), values[place.slot]);
  }
}

bool RecordReader::read_payload(const char* payload, const char* end) {
  const char* types = payload;
  std::uint64_t header_size = 0;
  if (!read_varint(types, end, header_size) ||
      header_size > static_cast<std::uint64_t>(end - payload)) {
    return false;
  }
  const char* const file_end = layout_.bytes.data() + layout_.bytes.size();
  if (payload != spill_.data() && types == payload + 1 && header_size >= 1 &&
      header_size <= kMostHeader && static_cast<std::size_t>(file_end - payload) >= kMostHeader) {
    if (const Plan* plan = plan_of(payload, header_size)) {
      if (plan->size > static_cast<std::size_t>(end - payload)) {
        return false;
      }
      read_planned(*plan, payload);
      are_whole_ = plan->others.empty();
      return true;
    }
  }
  last_ = nullptr;
  const char* const types_end = payload + header_size;
  const bool is_valid =
      read_types(types, types_end, {types_end, static_cast<std::size_t>(end - types_end)}, slot_of_,
                 values_.data());
  are_whole_ = std::ranges::all_of(values_, &SqlValue::is_whole_or_null);
  return is_valid;
}

bool RecordReader::read(std::uint32_t page, std::uint32_t i) {
  const std::size_t start = static_cast<std::size_t>(page - 1) * layout_.page_size;
  const std::size_t header = start + (page == 1 ? kHeaderSize : 0);
  const std::uint32_t offset =
      big_endian(layout_.bytes, header + 8 + 2 * static_cast<std::size_t>(i), 2);
  const char* const page_end = layout_.bytes.data() + start + layout_.usable;
  if (offset >= layout_.usable) {
    return false;
  }
  const char* at = layout_.bytes.data() + start + offset;
  std::uint64_t payload_size = 0;
  std::uint64_t rowid = 0;
  if (!read_varint(at, page_end, payload_size) || !read_varint(at, page_end, rowid)) {
    return false;
  }
  const char* payload = at;
  const char* end = nullptr;
  page_used_ = i == 0 ? 0 : page_used_;
  page_used_ += static_cast<std::uint64_t>(at - (layout_.bytes.data() + start + offset));
  // The part of a payload that stays on the page: section 1.6 of the file format.
  const std::uint64_t most_local = layout_.usable - 35;
  if (payload_size <= most_local) {
    end = payload + payload_size;
    page_used_ += payload_size;
    if (payload_size > static_cast<std::uint64_t>(page_end - payload) ||
        page_used_ > layout_.usable) {
      return false;
    }
  } else {
    const std::uint64_t least_local = (layout_.usable - 12) * 32 / 255 - 23;
    const std::uint64_t fitting = least_local + (payload_size - least_local) % (layout_.usable - 4);
    const std::uint64_t local = fitting <= most_local ? fitting : least_local;
    page_used_ += local + 4;
    if (local + 4 > static_cast<std::uint64_t>(page_end - payload) || page_used_ > layout_.usable ||
        spilled_.fetch_add(payload_size, std::memory_order_relaxed) > layout_.bytes.size()) {
      return false;
    }
    const std::string_view here(payload, local);
    const std::uint32_t next = big_endian({payload + local, 4}, 0, 4);
    if (!gather(layout_, here, next, payload_size, spill_)) {
      return false;
    }
    payload = spill_.data();
    end = payload + spill_.size();
  }
  if (!read_payload(payload, end)) {
    return false;
  }
  // Last: a column that stands for the rowid is stored as null.
  if (rowid_slot_ >= 0) {
    values_[static_cast<std::size_t>(rowid_slot_)].kind = SqlValue::Kind::kInteger;
    values_[static_cast<std::size_t>(rowid_slot_)].integer = static_cast<std::int64_t>(rowid);
  }
  return true;
}

}  // namespace sqlite_pages

}  // namespace gpuwhy
