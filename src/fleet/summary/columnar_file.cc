// SPDX-License-Identifier: Apache-2.0
//
// Columnar container of integers and texts, readable across versions.
//
// Columns have names. Each is contiguous, so reading it is one loop without a branch on types, and
// skipping an unknown one costs nothing. JSON would be ten times as large and thirty times as slow
// to read at ten thousand ranks; protobuf is not self-describing.
//
// The bytes are untrusted: every length is checked against what is left, and a number of values
// cannot exceed the number of bytes that hold them. The checksum protects against damage, not
// against malice.
#include "fleet/summary/columnar_file.h"

#include <algorithm>

#include <fmt/format.h>
#include <zlib.h>

#include "base/error.h"
#include "fleet/summary/varint.h"

namespace gpuwhy {
namespace {

constexpr std::string_view kMagic("gpuwhy\x1a\n", 8);
constexpr std::size_t kChecksumBytes = 4;

[[noreturn]] void damaged_table(std::string_view what) {
  throw Error(ErrorKind::kInput, fmt::format("damaged summary: {}", what),
              "make it again from the rank's recording next to it: gpuwhy analyze --out DIR");
}

std::uint32_t crc_of(std::string_view bytes) {
  return static_cast<std::uint32_t>(
      crc32_z(0, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size()));
}

// Reads forward, never past the end.
class Cursor {
 public:
  explicit Cursor(std::string_view bytes) : at_(bytes.data()), end_(at_ + bytes.size()) {}

  std::size_t left() const { return static_cast<std::size_t>(end_ - at_); }

  std::uint64_t varint() {
    if (at_ != end_ && (static_cast<unsigned char>(*at_) & 0x80) == 0) {
      return static_cast<unsigned char>(*at_++);
    }
    std::uint64_t value = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      if (at_ == end_) {
        damaged_table("it ends inside a number");
      }
      const auto byte = static_cast<unsigned char>(*at_++);
      value |= static_cast<std::uint64_t>(byte & 0x7f) << shift;
      if ((byte & 0x80) == 0) {
        return value;
      }
    }
    damaged_table("a number of more than 64 bits");
  }

  std::string_view piece(std::uint64_t size) {
    if (size > left()) {
      damaged_table("it ends too early");
    }
    const std::string_view found(at_, size);
    at_ += size;
    return found;
  }

  std::string_view text() { return piece(varint()); }

 private:
  const char* at_;
  const char* end_;
};

}  // namespace

void ColumnarWriter::numbers(std::string_view column, std::span<const std::int64_t> values) {
  columns_.push_back({std::string(column), 'u', {values.begin(), values.end()}});
  for (std::int64_t& value : columns_.back().values) {
    value = std::max<std::int64_t>(value, 0);
  }
}

void ColumnarWriter::texts(std::string_view column, std::span<const std::string_view> values) {
  Pending pending{std::string(column), 's', {}};
  pending.values.reserve(values.size());
  auto last = texts_.end();  // neighbours are mostly equal
  for (const std::string_view text : values) {
    if (last == texts_.end() || last->first != text) {
      last = texts_.find(text);
    }
    if (last == texts_.end()) {
      last = texts_.emplace(text, static_cast<std::int64_t>(texts_.size())).first;
    }
    pending.values.push_back(last->second);
  }
  columns_.push_back(std::move(pending));
}

std::string ColumnarWriter::finish(std::string_view kind) const {
  std::string body;
  put_varint(body, kColumnarFileVersion);
  put_text(body, kind);
  put_varint(body, texts_.size());
  // Texts are sorted, so that equal tables give equal bytes whatever the order of adding.
  std::vector<std::uint64_t> sorted(texts_.size());  // the order they came in -> place in the file
  std::uint64_t place = 0;
  for (const auto& [text, number] : texts_) {
    put_text(body, text);
    sorted[static_cast<std::size_t>(number)] = place++;
  }
  put_varint(body, columns_.size());
  std::string values;
  for (const Pending& column : columns_) {
    values.clear();
    for (const std::int64_t value : column.values) {
      put_varint(values, column.type == 's' ? sorted[static_cast<std::size_t>(value)]
                                            : static_cast<std::uint64_t>(value));
    }
    put_text(body, column.name);
    body.push_back(column.type);
    put_varint(body, column.values.size());
    put_text(body, values);
  }
  std::string file(kMagic);
  file.append(kChecksumBytes, '\0');
  file += body;
  with_checksum(file);
  return file;
}

void with_checksum(std::string& file) {
  const std::size_t start = kMagic.size() + kChecksumBytes;
  const std::uint32_t checksum = crc_of(std::string_view(file).substr(start));
  for (std::size_t i = 0; i < kChecksumBytes; ++i) {
    file[kMagic.size() + i] = static_cast<char>((checksum >> (8 * i)) & 0xff);
  }
}

ColumnarFile::ColumnarFile(std::string_view bytes) {
  if (!bytes.starts_with(kMagic)) {
    throw Error(ErrorKind::kInput, "not a summary of gpuwhy",
                "summaries are the summary.gpuwhy of bundles, and what gpuwhy merge --out wrote");
  }
  // The checksum covers everything after it and is verified before anything is parsed.
  Cursor head(bytes.substr(kMagic.size()));
  const std::string_view checksum = head.piece(kChecksumBytes);
  for (std::size_t i = 0; i < kChecksumBytes; ++i) {
    checksum_ |= static_cast<std::uint32_t>(static_cast<unsigned char>(checksum[i])) << (8 * i);
  }
  const std::string_view body = head.piece(head.left());
  if (crc_of(body) != checksum_) {
    damaged_table("its checksum does not match");
  }
  Cursor cursor(body);
  const std::uint64_t version = cursor.varint();
  if (version != kColumnarFileVersion) {
    throw Error(ErrorKind::kInput,
                fmt::format("a summary of version {}; this program reads {}", version,
                            kColumnarFileVersion),
                "merge with the gpuwhy that wrote it, or a newer one");
  }
  kind_ = cursor.text();
  const std::uint64_t num_texts = cursor.varint();
  if (num_texts > cursor.left()) {
    damaged_table("more texts than bytes");
  }
  texts_.reserve(num_texts);
  for (std::uint64_t i = 0; i < num_texts; ++i) {
    texts_.push_back(cursor.text());
  }
  const std::uint64_t num_columns = cursor.varint();
  for (std::uint64_t i = 0; i < num_columns; ++i) {
    const std::string_view name = cursor.text();
    const char type = cursor.piece(1)[0];
    const std::uint64_t num_values = cursor.varint();
    const std::string_view values = cursor.text();
    if (num_values > values.size()) {
      damaged_table("more values than bytes");
    }
    columns_.push_back({name, {type, num_values, values}});
  }
}

const ColumnarFile::Stored* ColumnarFile::find(std::string_view column) const {
  const auto found = std::find_if(columns_.begin(), columns_.end(),
                                  [&](const auto& entry) { return entry.first == column; });
  return found == columns_.end() ? nullptr : &found->second;
}

std::size_t ColumnarFile::size_of(std::string_view column) const {
  const Stored* stored = find(column);
  return stored == nullptr ? 0 : stored->num_values;
}

template <typename T>
std::vector<T> ColumnarFile::decoded(std::string_view column, char type, std::uint64_t end,
                                     const char* beyond) const {
  const Stored* stored = find(column);
  if (stored == nullptr) {
    return {};
  }
  if (stored->type != type) {
    damaged_table("a column of another type");
  }
  std::vector<T> values(stored->num_values);
  Cursor cursor(stored->bytes);
  for (T& value : values) {
    const std::uint64_t raw = cursor.varint();
    if (raw >= end) {
      damaged_table(beyond);
    }
    value = static_cast<T>(raw);
  }
  return values;
}

std::vector<std::int64_t> ColumnarFile::numbers(std::string_view column) const {
  return decoded<std::int64_t>(column, 'u', std::uint64_t{1} << 63, "a number beyond 63 bits");
}

std::vector<std::uint32_t> ColumnarFile::text_ids(std::string_view column) const {
  return decoded<std::uint32_t>(column, 's', texts_.size(), "a text that is not in its table");
}

}  // namespace gpuwhy
