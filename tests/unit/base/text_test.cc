// SPDX-License-Identifier: Apache-2.0
#include "base/text.h"

#include "testing.h"

namespace gpuwhy {
namespace {

TEST(Text, TrimAndSplit) {
  EXPECT_EQ(trim("  a b\t\n"), "a b");
  EXPECT_EQ(trim(" \n "), "");
  EXPECT_THAT(split("a,b,,c", ','), ElementsAre("a", "b", "", "c"));
  EXPECT_THAT(split("", ','), ElementsAre(""));
}

TEST(Nearest, FindsTypos) {
  const std::vector<std::string> commands = {"doctor", "config", "list", "run"};
  EXPECT_EQ(nearest("docter", commands), "doctor");
  EXPECT_EQ(nearest("rnu", commands), "run");
  EXPECT_EQ(nearest("CONFIG", commands), "config");
  const std::vector<std::string> keys = {"run.mode", "run.top_n_kernels"};
  EXPECT_EQ(nearest("run.top_kernels", keys), "run.top_n_kernels");
}

TEST(Nearest, IsSilentWhenNothingIsNear) {
  const std::vector<std::string> commands = {"doctor", "list"};
  EXPECT_EQ(nearest("ls", commands), std::nullopt);
  EXPECT_EQ(nearest("zebra", commands), std::nullopt);
  EXPECT_EQ(nearest("", commands), std::nullopt);
  EXPECT_EQ(nearest(std::string(100'000, 'a'), commands), std::nullopt);
  EXPECT_EQ(nearest("doctor", {}), std::nullopt);
}

TEST(Printable, HidesNothingAndStopsEscapes) {
  EXPECT_EQ(printable("gemm<128, 64>"), "gemm<128, 64>");
  EXPECT_EQ(printable("größer"), "größer");
  EXPECT_EQ(printable("a\x1b[31mb\nc"), "a\\x1b[31mb\\x0ac");
  EXPECT_EQ(printable(std::string("a\0b", 3)), "a\\x00b");
  EXPECT_EQ(printable("abc\xe2\x80\xae"
                      "fed"),
            "abc\\u202efed");  // right-to-left override
  EXPECT_EQ(printable("\xc2\x9b"
                      "31m"),
            "\\u009b31m");                                             // an escape in one character
  EXPECT_EQ(printable("\xff\xc3(\xe2\x82"), "\\xff\\xc3(\\xe2\\x82");  // not UTF-8
  EXPECT_EQ(printable("\xc0\xaf"), "\\xc0\\xaf");                      // overlong
  EXPECT_EQ(printable("\xed\xa0\x80"), "\\xed\\xa0\\x80");             // surrogate
}

TEST(Text, WidthCountsCharacters) {
  EXPECT_EQ(display_width("abc"), 3U);
  EXPECT_EQ(display_width("größer"), 6U);
}

TEST(Text, WrapsAtBlanksWithAHangingIndent) {
  EXPECT_EQ(wrapped("one two three", 0, 2), "one two three");
  EXPECT_EQ(wrapped("one two three", 13, 2), "one two three");
  EXPECT_EQ(wrapped("one two three", 8, 2), "one two\n  three");
  EXPECT_EQ(wrapped("  one two three", 8, 2), "  one\n  two\n  three");
  EXPECT_EQ(wrapped("aa unbreakable_word b", 6, 2), "aa\n  unbreakable_word\n  b");
  EXPECT_EQ(wrapped("größer größer", 8, 0), "größer\ngrößer");
  EXPECT_EQ(wrapped("", 5, 2), "");
  EXPECT_EQ(wrapped("busy 12.3 % of 4 ms", 9, 2), "busy\n  12.3 %\n  of 4 ms");
}

TEST(Text, ShortensToColumns) {
  EXPECT_EQ(shortened("größer", 6), "größer");
  EXPECT_EQ(shortened("größere", 6), "grö...");
  EXPECT_EQ(shortened("abcdef", 2), "...");
  EXPECT_EQ(shortened_inside("abcdefghijklmn", 12), "abcdef...lmn");
  EXPECT_EQ(shortened_inside("größer und größer", 9), "größ...er");
  EXPECT_EQ(shortened_inside("abcdefghijklmn", 20), "abcdefghijklmn");
}

}  // namespace
}  // namespace gpuwhy
