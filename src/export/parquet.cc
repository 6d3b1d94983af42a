// SPDX-License-Identifier: Apache-2.0
//
// Row groups, pages and footer of a Parquet file.
//
// A file is: PAR1, the pages of each column of each row group, the footer, its length, PAR1. The
// footer says where everything is, so it comes last and nothing is written twice. A chunk is one
// column of one row group: a page with its dictionary, if it has one, and a page with all its
// values.
//
// Field numbers and codes: parquet.thrift of github.com/apache/parquet-format.
#include "export/parquet.h"

#include <algorithm>
#include <unordered_map>

#include <zlib.h>

#include "base/gzip_base64.h"
#include "base/text.h"
#include "export/parquet_pages.h"
#include "export/thrift_writer.h"

namespace gpuwhy {
namespace {

constexpr std::string_view kMagic = "PAR1";
constexpr std::int32_t kBoolean = 0, kInt64 = 2, kByteArray = 6;              // Type
constexpr std::int32_t kPlain = 0, kRle = 3, kDelta = 5, kRleDictionary = 8;  // Encoding
constexpr std::int32_t kUncompressed = 0, kGzip = 2;                          // Codec
constexpr std::int32_t kDataPage = 0, kDictionaryPage = 2;                    // PageType
constexpr std::int32_t kRequired = 0, kOptional = 1;
constexpr std::size_t kMostDictionary = 1024;     // numbers; texts have no limit
constexpr std::size_t kMostStatisticsBytes = 64;  // a longer text has no minimum and maximum

// A column of one row group as it is in the file.
struct WrittenChunk {
  std::int64_t offset = 0;  // of its first page
  std::optional<std::int64_t> dictionary_offset;
  std::int64_t data_offset = 0;
  std::int64_t packed_bytes = 0;
  std::int64_t plain_bytes = 0;  // the same before compression
  std::int64_t num_values = 0;
  std::int64_t num_null = 0;
  std::int32_t codec = kUncompressed;
  std::int32_t encoding = kPlain;
  std::optional<std::pair<std::string, std::string>> range;  // minimum and maximum
};

struct WrittenGroup {
  std::int64_t num_rows = 0;
  std::vector<WrittenChunk> chunks;
};

// The pages of a chunk before compression.
struct ChunkPages {
  std::int32_t encoding = kPlain;
  std::string values;
  std::optional<std::string> dictionary;
  std::int32_t dictionary_size = 0;
};

bool is_text(const ResultColumn& column) {
  return column.type == ColumnType::kText || column.type == ColumnType::kName;
}

std::int32_t physical_type(const ResultColumn& column) {
  return is_text(column) ? kByteArray : column.type == ColumnType::kFlag ? kBoolean : kInt64;
}

// Four bytes with the length, the lowest first, then the text: PLAIN of texts, and what is before
// definition levels.
std::string length_and_text(std::string_view text) {
  std::string bytes;
  const auto size = static_cast<std::uint32_t>(text.size());
  for (unsigned i = 0; i < 4; ++i) {
    bytes.push_back(static_cast<char>(size >> (8 * i)));
  }
  return bytes += text;
}

// Indexes into a dictionary: their width in one byte, then the runs. Not preceded by a length,
// unlike definition levels.
std::string indexes_page(const std::vector<std::uint32_t>& indexes, std::size_t num_entries) {
  const unsigned width = bits_for(num_entries == 0 ? 0 : num_entries - 1);
  std::string page(1, static_cast<char>(width));
  return page += hybrid_runs(indexes, width);
}

// Numbers by a dictionary; nullopt if too many differ.
std::optional<ChunkPages> dictionary_numbers(const std::vector<std::int64_t>& values) {
  std::unordered_map<std::int64_t, std::uint32_t> places;
  std::vector<std::int64_t> entries;
  std::vector<std::uint32_t> indexes;
  indexes.reserve(values.size());
  for (const std::int64_t value : values) {
    const auto [found, is_new] =
        places.try_emplace(value, static_cast<std::uint32_t>(entries.size()));
    if (is_new) {
      if (entries.size() == kMostDictionary) {
        return std::nullopt;
      }
      entries.push_back(value);
    }
    indexes.push_back(found->second);
  }
  return ChunkPages{kRleDictionary, indexes_page(indexes, entries.size()), plain_numbers(entries),
                    static_cast<std::int32_t>(entries.size())};
}

// The smallest of the three encodings. Sizes are those before compression: gzip does not turn the
// order around on times, counts and ids, and trying it on each would take three times as long.
ChunkPages number_pages(const std::vector<std::int64_t>& values) {
  ChunkPages best{kDelta, delta_numbers(values), std::nullopt, 0};
  if (auto by_dictionary = dictionary_numbers(values);
      by_dictionary &&
      by_dictionary->values.size() + by_dictionary->dictionary->size() < best.values.size()) {
    best = std::move(*by_dictionary);
  }
  if (values.size() * sizeof(std::int64_t) <= best.values.size()) {
    best = {kPlain, plain_numbers(values), std::nullopt, 0};
  }
  return best;
}

// Texts always have a dictionary: a recording has few names and many launches. The dictionary is of
// this row group alone, so that readers can skip groups.
ChunkPages text_pages(const ResultColumn& column, const std::vector<std::int64_t>& keys,
                      WrittenChunk& chunk) {
  std::unordered_map<std::int64_t, std::uint32_t> places;  // by key
  std::unordered_map<std::string, std::uint32_t> by_text;  // keys may have equal texts
  std::vector<std::uint32_t> indexes;
  indexes.reserve(keys.size());
  std::string dictionary;
  for (const std::int64_t key : keys) {
    const auto [found, is_new] = places.try_emplace(key, 0);
    if (is_new) {
      std::string text = valid_text(column.text(key));
      const auto [entry, is_new_text] =
          by_text.try_emplace(std::move(text), static_cast<std::uint32_t>(by_text.size()));
      if (is_new_text) {
        dictionary += length_and_text(entry->first);
      }
      found->second = entry->second;
    }
    indexes.push_back(found->second);
  }
  if (!by_text.empty()) {
    const auto [least, most] =
        std::minmax_element(by_text.begin(), by_text.end(),
                            [](const auto& a, const auto& b) { return a.first < b.first; });
    if (std::max(least->first.size(), most->first.size()) <= kMostStatisticsBytes) {
      chunk.range = {least->first, most->first};
    }
  }
  return {kRleDictionary, indexes_page(indexes, by_text.size()), std::move(dictionary),
          static_cast<std::int32_t>(by_text.size())};
}

// Encodes the values that are there; `chunk` learns their minimum and maximum. Those of texts are
// in the order of bytes, as readers compare them.
ChunkPages pages_of(const ResultColumn& column, const std::vector<std::int64_t>& values,
                    WrittenChunk& chunk) {
  if (is_text(column)) {
    return text_pages(column, values, chunk);
  }
  const bool is_flag = column.type == ColumnType::kFlag;
  if (!values.empty()) {
    const auto [least, most] = std::minmax_element(values.begin(), values.end());
    const auto bytes = [&](std::int64_t value) {
      return is_flag ? std::string(1, static_cast<char>(value)) : plain_numbers({&value, 1});
    };
    chunk.range = {bytes(*least), bytes(*most)};
  }
  return is_flag ? ChunkPages{kPlain, plain_flags(values), std::nullopt, 0} : number_pages(values);
}

// Header and contents of a page, which `packed` holds as it is written.
void write_page(std::int32_t type, std::int32_t num_values, std::int32_t encoding,
                const std::string& plain, const std::string& packed, WrittenChunk& chunk,
                FileWriter& file) {
  const auto checksum = static_cast<std::int32_t>(
      crc32_z(0, reinterpret_cast<const Bytef*>(packed.data()), packed.size()));
  ThriftWriter header;
  header.i32(1, type);
  header.i32(2, static_cast<std::int32_t>(plain.size()));
  header.i32(3, static_cast<std::int32_t>(packed.size()));
  header.i32(4, checksum);
  header.begin(type == kDataPage ? 5 : 7);
  header.i32(1, num_values);
  header.i32(2, encoding);
  if (type == kDataPage) {
    header.i32(3, kRle);  // of definition levels
    header.i32(4, kRle);  // of repetition levels, which there are none of
  }
  header.end();
  const std::string head = header.finish();
  file.write(head);
  file.write(packed);
  chunk.plain_bytes += static_cast<std::int64_t>(head.size() + plain.size());
  chunk.packed_bytes += static_cast<std::int64_t>(head.size() + packed.size());
}

// Asks for the rows of one column, encodes them and writes their pages. This is all that is in
// memory at a time.
WrittenChunk write_chunk(const ResultColumn& column, std::size_t begin, std::size_t end,
                         FileWriter& file) {
  constexpr int kFastest = 1;
  WrittenChunk chunk;
  chunk.num_values = static_cast<std::int64_t>(end - begin);
  std::vector<std::int64_t> values;
  std::vector<std::uint32_t> levels;  // 1: there is a value
  values.reserve(end - begin);
  levels.reserve(column.is_optional ? end - begin : 0);
  for (std::size_t row = begin; row < end; ++row) {
    const std::optional<std::int64_t> value = column.value(row);
    if (value || !column.is_optional) {
      values.push_back(value.value_or(0));
    }
    if (column.is_optional) {
      levels.push_back(value ? 1 : 0);
    }
  }
  chunk.num_null = chunk.num_values - static_cast<std::int64_t>(values.size());
  ChunkPages pages = pages_of(column, values, chunk);
  chunk.encoding = pages.encoding;
  if (column.is_optional) {
    pages.values.insert(0, length_and_text(hybrid_runs(levels, 1)));
  }
  // One codec for all pages of a chunk: gzip if it saves a tenth.
  std::string packed_dictionary = gzipped(pages.dictionary.value_or(""), kFastest);
  std::string packed_values = gzipped(pages.values, kFastest);
  const std::size_t plain = pages.values.size() + pages.dictionary.value_or("").size();
  if (10 * (packed_dictionary.size() + packed_values.size()) < 9 * plain) {
    chunk.codec = kGzip;
  } else {
    packed_dictionary = pages.dictionary.value_or("");
    packed_values = pages.values;
  }
  chunk.offset = static_cast<std::int64_t>(file.size_bytes());
  if (pages.dictionary) {
    chunk.dictionary_offset = chunk.offset;
    write_page(kDictionaryPage, pages.dictionary_size, kPlain, *pages.dictionary, packed_dictionary,
               chunk, file);
  }
  chunk.data_offset = static_cast<std::int64_t>(file.size_bytes());
  write_page(kDataPage, static_cast<std::int32_t>(chunk.num_values), chunk.encoding, pages.values,
             packed_values, chunk, file);
  return chunk;
}

// The root, then one element per column: flat, so none but the root has children.
void add_schema(const ColumnTable& table, ThriftWriter& footer) {
  footer.list(2, ThriftWriter::kStruct, table.columns.size() + 1);
  footer.begin_element();
  footer.text(4, table.name);
  footer.i32(5, static_cast<std::int32_t>(table.columns.size()));
  footer.end();
  for (const ResultColumn& column : table.columns) {
    footer.begin_element();
    footer.i32(1, physical_type(column));
    footer.i32(3, column.is_optional ? kOptional : kRequired);
    footer.text(4, column.name);
    if (is_text(column)) {
      footer.i32(6, 0);  // ConvertedType UTF8, for old readers
      footer.begin(10);  // LogicalType
      footer.begin(1);   // STRING
      footer.end();
      footer.end();
    }
    footer.end();
  }
}

// Where a chunk is, how it is encoded, and its statistics.
void add_chunk(const ResultColumn& column, const WrittenChunk& chunk, ThriftWriter& footer) {
  footer.begin_element();
  footer.i64(2, chunk.offset);
  footer.begin(3);
  footer.i32(1, physical_type(column));
  footer.list(2, ThriftWriter::kI32, chunk.dictionary_offset ? 3 : 2);
  footer.element(chunk.encoding);
  footer.element(kRle);
  if (chunk.dictionary_offset) {
    footer.element(kPlain);
  }
  footer.list(3, ThriftWriter::kText, 1);
  footer.element(std::string_view(column.name));
  footer.i32(4, chunk.codec);
  footer.i64(5, chunk.num_values);
  footer.i64(6, chunk.plain_bytes);
  footer.i64(7, chunk.packed_bytes);
  footer.i64(9, chunk.data_offset);
  if (chunk.dictionary_offset) {
    footer.i64(11, *chunk.dictionary_offset);
  }
  footer.begin(12);
  footer.i64(3, chunk.num_null);
  if (chunk.range) {
    footer.text(5, chunk.range->second);
    footer.text(6, chunk.range->first);
  }
  footer.end();
  footer.end();
  footer.end();
}

// Row groups with their sizes before and after compression.
void add_groups(const ColumnTable& table, const std::vector<WrittenGroup>& groups,
                ThriftWriter& footer) {
  footer.list(4, ThriftWriter::kStruct, groups.size());
  for (const WrittenGroup& group : groups) {
    std::int64_t plain_bytes = 0;
    std::int64_t packed_bytes = 0;
    footer.begin_element();
    footer.list(1, ThriftWriter::kStruct, group.chunks.size());
    for (std::size_t i = 0; i < group.chunks.size(); ++i) {
      add_chunk(table.columns[i], group.chunks[i], footer);
      plain_bytes += group.chunks[i].plain_bytes;
      packed_bytes += group.chunks[i].packed_bytes;
    }
    footer.i64(2, plain_bytes);
    footer.i64(3, group.num_rows);
    footer.i64(5, group.chunks.front().offset);
    footer.i64(6, packed_bytes);
    footer.end();
  }
}

}  // namespace

void write_parquet(const ColumnTable& table,
                   const std::vector<std::pair<std::string, std::string>>& metadata,
                   const std::string& created_by, FileWriter& file, std::size_t rows_per_group) {
  file.write(kMagic);
  std::vector<WrittenGroup> groups;
  for (std::size_t begin = 0; begin < table.num_rows; begin += rows_per_group) {
    const std::size_t end = std::min(table.num_rows, begin + rows_per_group);
    WrittenGroup& group = groups.emplace_back();
    group.num_rows = static_cast<std::int64_t>(end - begin);
    group.chunks.reserve(table.columns.size());
    for (const ResultColumn& column : table.columns) {
      group.chunks.push_back(write_chunk(column, begin, end, file));
    }
  }
  ThriftWriter footer;
  footer.i32(1, 2);  // the version of the format that has these logical types
  add_schema(table, footer);
  footer.i64(3, static_cast<std::int64_t>(table.num_rows));
  add_groups(table, groups, footer);
  footer.list(5, ThriftWriter::kStruct, metadata.size());
  for (const auto& [key, value] : metadata) {
    footer.begin_element();
    footer.text(1, key);
    footer.text(2, value);
    footer.end();
  }
  footer.text(6, created_by);
  // Minimum and maximum are in the order of each type; without this, readers ignore them.
  footer.list(7, ThriftWriter::kStruct, table.columns.size());
  for (std::size_t i = 0; i < table.columns.size(); ++i) {
    footer.begin_element();
    footer.begin(1);
    footer.end();
    footer.end();
  }
  const std::string bytes = footer.finish();
  file.write(bytes);
  file.write(length_and_text(bytes).substr(0, 4));
  file.write(kMagic);
}

}  // namespace gpuwhy
