// SPDX-License-Identifier: Apache-2.0
//
// Encodings against bytes worked out by hand from the format's own document; whole files are read
// back by other programs (tests/generated/tables.py).
#include "export/parquet_pages.h"

#include <vector>

#include "export/thrift_writer.h"
#include "testing.h"

namespace gpuwhy {
namespace {

std::vector<unsigned> bytes_of(const std::string& text) {
  std::vector<unsigned> bytes;
  for (const char c : text) {
    bytes.push_back(static_cast<unsigned char>(c));
  }
  return bytes;
}

using Bytes = std::vector<unsigned>;

TEST(ParquetPages, BitPacksAsInTheFormatsExample) {
  // Encodings.md: the numbers 0 to 7 in three bits each are 0x88 0xC6 0xFA; one group of eight.
  const std::vector<std::uint32_t> values = {0, 1, 2, 3, 4, 5, 6, 7};
  EXPECT_EQ(bytes_of(hybrid_runs(values, 3)), (Bytes{0x03, 0x88, 0xC6, 0xFA}));
}

TEST(ParquetPages, WritesRunsAsACount) {
  EXPECT_EQ(bytes_of(hybrid_runs(std::vector<std::uint32_t>(100, 5), 3)), (Bytes{0xC8, 0x01, 5}));
  // Three packed values take five of the run to fill their group.
  std::vector<std::uint32_t> mixed = {1, 0, 1};
  mixed.insert(mixed.end(), 13, 0);
  EXPECT_EQ(bytes_of(hybrid_runs(mixed, 1)), (Bytes{0x03, 0x05, 8 << 1, 0}));
  // A run too short for a count is packed, and the last group filled with zeros.
  EXPECT_EQ(bytes_of(hybrid_runs(std::vector<std::uint32_t>{1, 1, 1}, 1)), (Bytes{0x03, 0x07}));
  EXPECT_TRUE(hybrid_runs({}, 1).empty());
}

TEST(ParquetPages, PacksDifferences) {
  // Encodings.md: 1 to 5 have the smallest difference 1, and need no bits beyond it.
  EXPECT_EQ(bytes_of(delta_numbers(std::vector<std::int64_t>{1, 2, 3, 4, 5})),
            (Bytes{0x80, 0x01, 4, 5, 2, 2, 0, 0, 0, 0}));
  // 7, 5, 3, 1, 2, 3, 4, 5: differences -2 -2 -2 1 1 1 1, above the smallest 0 0 0 3 3 3 3, of two
  // bits each.
  const std::string packed = delta_numbers(std::vector<std::int64_t>{7, 5, 3, 1, 2, 3, 4, 5});
  EXPECT_EQ(bytes_of(packed.substr(0, 12)),
            (Bytes{0x80, 0x01, 4, 8, 14, 3, 2, 0, 0, 0, 0xC0, 0x3F}));
  EXPECT_EQ(packed.size(), 10U + 32 * 2 / 8);
  EXPECT_EQ(bytes_of(delta_numbers({})), (Bytes{0x80, 0x01, 4, 0, 0}));
}

TEST(ParquetPages, SurvivesDifferencesThatWrapAround) {
  const std::string packed =
      delta_numbers(std::vector<std::int64_t>{INT64_MAX, INT64_MIN, INT64_MAX});
  // Differences 1 and -1: two bits above the smallest.
  EXPECT_EQ(static_cast<unsigned char>(packed[4 + 10 + 1]), 2U);
}

TEST(ParquetPages, CountsBits) {
  EXPECT_EQ(bits_for(0), 1U);
  EXPECT_EQ(bits_for(1), 1U);
  EXPECT_EQ(bits_for(2), 2U);
  EXPECT_EQ(bits_for(255), 8U);
  EXPECT_EQ(bits_for(256), 9U);
}

TEST(ThriftWriter, WritesTheCompactProtocol) {
  ThriftWriter writer;
  writer.i32(1, -1);
  writer.text(4, "ab");
  writer.list(20, ThriftWriter::kI32, 2);  // beyond what a step of four bits reaches
  writer.element(std::int32_t{1});
  writer.element(std::int32_t{300});
  writer.flag(21, true);
  EXPECT_EQ(bytes_of(writer.finish()),
            (Bytes{0x15, 1, 0x38, 2, 'a', 'b', 0x09, 40, 0x25, 2, 0xD8, 0x04, 0x11, 0}));
}

}  // namespace
}  // namespace gpuwhy
