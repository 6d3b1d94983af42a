// SPDX-License-Identifier: Apache-2.0
#include "base/csv.h"

#include "testing.h"

namespace gpuwhy {
namespace {

TEST(Csv, ReadsCellsAndRecords) {
  CsvReader reader("a,b,,c\r\n\"1,2\",\"say \"\"hi\"\"\",\"two\nlines\"\nlast");
  EXPECT_THAT(reader.next(), ElementsAre("a", "b", "", "c"));
  EXPECT_THAT(reader.next(), ElementsAre("1,2", "say \"hi\"", "two\nlines"));
  EXPECT_THAT(reader.next(), ElementsAre("last"));
  EXPECT_TRUE(reader.is_done());
}

TEST(Csv, AnUnclosedQuoteEndsWithItsLine) {
  CsvReader reader("x,\"open\ny,z\n");
  EXPECT_THAT(reader.next(), ElementsAre("x", "\"open"));
  EXPECT_THAT(reader.next(), ElementsAre("y", "z"));
}

TEST(Csv, LinesCanBeLookedAtAndSkipped) {
  CsvReader reader("one\r\ntwo\nthree");
  EXPECT_EQ(reader.peek_line(), "one");
  reader.skip_line();
  EXPECT_EQ(reader.peek_line(), "two");
  reader.skip_line();
  reader.skip_line();
  EXPECT_TRUE(reader.is_done());
  EXPECT_EQ(reader.peek_line(), "");
}

TEST(Csv, ALineOfCommasIsBounded) {
  const std::string text(100'000, ',');
  CsvReader reader(text);
  EXPECT_EQ(reader.next().size(), CsvReader::kMostCells);
  EXPECT_TRUE(reader.is_done());
}

TEST(Csv, WhatIsWrittenIsReadBack) {
  for (const std::string text : {"plain", "a,b", "say \"hi\"", "two\nlines", ""}) {
    const std::string line = csv_cell(text) + ",x\n";
    CsvReader reader(line);
    EXPECT_THAT(reader.next(), ElementsAre(text, "x"));
  }
}

TEST(Csv, NoControlCharacterReachesATerminal) {
  EXPECT_EQ(csv_cell("a\x1b[31mb"), "a\\x1b[31mb");
  EXPECT_EQ(csv_cell("a\rb\nc"), "\"a\\x0db\nc\"");
}

}  // namespace
}  // namespace gpuwhy
