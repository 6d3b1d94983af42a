// SPDX-License-Identifier: Apache-2.0
//
// Changes of GGUF headers: values, types, shapes and names at the edges; pairs and tensors removed,
// doubled and swapped; counts that are one too many.
#include <cstdint>
#include <cstring>
#include <vector>

#include "fuzz/structure.h"

namespace gpuwhy {
namespace {

constexpr std::size_t kFrontBytes = 24;  // magic, version, number of tensors, number of pairs
constexpr std::uint32_t kTextType = 8;
constexpr std::uint32_t kArrayType = 9;
constexpr std::size_t kTypeBytes[] = {1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};

constexpr std::uint64_t kNumbers[] = {
    0, 1, 2, 3, 8, 64, 128, 1 << 20, 0x7fffffff, 0x80000000, 0xffffffff, 1ULL << 62, UINT64_MAX};

// Reads forward; everything after a size that does not fit is empty.
class Cursor {
 public:
  explicit Cursor(std::string_view bytes) : bytes_(bytes) {}
  bool is_good() const { return is_good_; }
  std::size_t at() const { return at_; }
  void skip(std::uint64_t count) {
    is_good_ = is_good_ && count <= bytes_.size() - at_;
    at_ += is_good_ ? count : 0;
  }
  std::uint64_t number(std::size_t size) {
    std::uint64_t value = 0;
    const std::size_t begin = at_;
    skip(size);
    if (is_good_) {
      std::memcpy(&value, bytes_.data() + begin, size);
    }
    return value;
  }

 private:
  std::string_view bytes_;
  std::size_t at_ = 0;
  bool is_good_ = true;
};

// A value that is kept apart: the bytes of its number.
struct Entry {
  std::string bytes;
  std::size_t number_at = 0;  // 0: none
  std::size_t number_bytes = 0;
};

// A type that is not known, or a list in a list, ends the reading: it must get on with each value.
void skip_value(Cursor& cursor, std::uint64_t type) {
  if (type == kTextType) {
    cursor.skip(cursor.number(8));
  } else {
    const bool is_known = type < std::size(kTypeBytes) && kTypeBytes[type] > 0;
    cursor.skip(is_known ? kTypeBytes[type] : UINT64_MAX);
  }
}

Entry read_pair(std::string_view bytes, Cursor& cursor) {
  const std::size_t begin = cursor.at();
  cursor.skip(cursor.number(8));
  const std::uint64_t type = cursor.number(4);
  Entry entry;
  if (type == kArrayType) {
    const std::uint64_t of = cursor.number(4);
    entry.number_at = cursor.at() - begin;
    entry.number_bytes = 8;
    const std::uint64_t count = cursor.number(8);
    for (std::uint64_t i = 0; i < count && cursor.is_good() && cursor.at() < bytes.size(); ++i) {
      skip_value(cursor, of);
    }
  } else {
    if (type < std::size(kTypeBytes) && kTypeBytes[type] > 0) {
      entry.number_at = cursor.at() - begin;
      entry.number_bytes = kTypeBytes[type];
    }
    skip_value(cursor, type);
  }
  entry.bytes = bytes.substr(begin, cursor.at() - begin);
  return entry;
}

Entry read_tensor(std::string_view bytes, Cursor& cursor, Random& random) {
  const std::size_t begin = cursor.at();
  cursor.skip(cursor.number(8));
  const std::uint64_t num_dimensions = cursor.number(4);
  Entry entry;
  entry.number_at = cursor.at() - begin + 8 * pick(random, num_dimensions);
  entry.number_bytes = 8;
  cursor.skip(num_dimensions > 8 ? UINT64_MAX : 8 * num_dimensions);
  if (pick(random, 4) == 0) {
    entry.number_at = cursor.at() - begin;  // its type
    entry.number_bytes = 4;
  }
  cursor.skip(4 + 8);
  entry.bytes = bytes.substr(begin, cursor.at() - begin);
  return entry;
}

void change_number(Entry& entry, Random& random) {
  if (entry.number_bytes == 0 || entry.number_at + entry.number_bytes > entry.bytes.size()) {
    return;
  }
  const std::uint64_t value = one_of(kNumbers, random);
  std::memcpy(entry.bytes.data() + entry.number_at, &value, entry.number_bytes);
}

// Another character of the name, which comes first.
void change_name(Entry& entry, Random& random) {
  constexpr std::size_t kLengthBytes = 8;
  std::uint64_t length = 0;
  std::memcpy(&length, entry.bytes.data(), kLengthBytes);
  if (length > 0) {
    entry.bytes[kLengthBytes + pick(random, length)] = static_cast<char>(pick(random, 256));
  }
}

void change(std::vector<Entry>& entries, Random& random) {
  if (entries.empty()) {
    return;
  }
  const std::size_t at = pick(random, entries.size());
  switch (pick(random, 8)) {
    case 0:
      entries.erase(entries.begin() + static_cast<std::ptrdiff_t>(at));
      break;
    case 1: {
      const Entry copy = entries[at];
      entries.push_back(copy);
      break;
    }
    case 2:
      std::swap(entries[at], entries[pick(random, entries.size())]);
      break;
    case 3:
      change_name(entries[at], random);
      break;
    default:
      change_number(entries[at], random);
  }
}

void put(std::string& bytes, std::uint64_t value) {
  bytes.append(reinterpret_cast<const char*>(&value), sizeof(value));
}

}  // namespace

std::optional<std::string> changed_gguf(std::string_view bytes, std::size_t most_bytes,
                                        Random& random) {
  if (bytes.size() < kFrontBytes) {
    return std::nullopt;
  }
  Cursor cursor(bytes);
  cursor.skip(8);
  const std::uint64_t num_tensors = cursor.number(8);
  const std::uint64_t num_pairs = cursor.number(8);
  std::vector<Entry> pairs;
  std::vector<Entry> tensors;
  for (std::uint64_t i = 0; i < num_pairs && cursor.is_good(); ++i) {
    pairs.push_back(read_pair(bytes, cursor));
  }
  for (std::uint64_t i = 0; i < num_tensors && cursor.is_good(); ++i) {
    tensors.push_back(read_tensor(bytes, cursor, random));
  }
  if (!cursor.is_good()) {
    return std::nullopt;
  }
  change(pick(random, 2) == 0 ? pairs : tensors, random);
  std::string text(bytes.substr(0, 8));
  const std::uint64_t one_more = pick(random, 64) == 0 ? 1 : 0;
  put(text, tensors.size() + one_more);
  put(text, pairs.size());
  for (const Entry& pair : pairs) {
    text += pair.bytes;
  }
  for (const Entry& tensor : tensors) {
    text += tensor.bytes;
  }
  text += bytes.substr(cursor.at());
  return text.size() > most_bytes ? std::nullopt : std::optional(std::move(text));
}

}  // namespace gpuwhy
