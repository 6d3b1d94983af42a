// SPDX-License-Identifier: Apache-2.0
#include "base/units.h"

#include <cstdint>

#include "testing.h"

namespace gpuwhy {
namespace {

TEST(Units, DurationsKeepThreeDigits) {
  EXPECT_EQ(format_duration_ns(0), "0 ns");
  EXPECT_EQ(format_duration_ns(950), "950 ns");
  EXPECT_EQ(format_duration_ns(12'345), "12.3 us");
  EXPECT_EQ(format_duration_ns(4'560'000), "4.56 ms");
  EXPECT_EQ(format_duration_ns(78'900'000'000), "78.9 s");
  EXPECT_EQ(format_duration_ns(3'600'000'000'000), "3600 s");
  EXPECT_EQ(format_duration_ns(-1'500'000), "-1.50 ms");
}

TEST(Units, RoundingNeverShowsAThousand) {
  EXPECT_EQ(format_duration_ns(999), "999 ns");
  EXPECT_EQ(format_duration_ns(1'000), "1.00 us");
  EXPECT_EQ(format_duration_ns(999'499), "999 us");
  EXPECT_EQ(format_duration_ns(999'500), "1.00 ms");
  EXPECT_EQ(format_duration_ns(9'994'000), "9.99 ms");
  EXPECT_EQ(format_duration_ns(9'996'000), "10.0 ms");
  EXPECT_EQ(format_duration_ns(99'960'000), "100 ms");
}

TEST(Units, ExtremesDoNotOverflow) {
  EXPECT_EQ(format_duration_ns(INT64_MAX), "9223372037 s");
  EXPECT_EQ(format_duration_ns(INT64_MIN), "-9223372037 s");
  EXPECT_EQ(format_bytes(UINT64_MAX), "16777216 TiB");
}

TEST(Units, SizesAreRead) {
  EXPECT_EQ(parse_bytes("1048576"), 1048576U);
  EXPECT_EQ(parse_bytes("4GiB"), 4 * kGiB);
  EXPECT_EQ(parse_bytes("4g"), 4 * kGiB);
  EXPECT_EQ(parse_bytes(" 500 MB "), 500'000'000U);
  EXPECT_EQ(parse_bytes("1.5KiB"), 1536U);
  EXPECT_EQ(parse_bytes("2tb"), 2'000'000'000'000U);
  EXPECT_EQ(parse_bytes("0"), 0U);
  for (const char* wrong :
       {"", "GiB", "-1", "4 gigs", "1e3", "1.2.3", "nan", "9999999999TiB", "4GiBs"}) {
    EXPECT_EQ(parse_bytes(wrong), std::nullopt) << wrong;
  }
}

TEST(Units, DurationsAsUsersTypeThem) {
  EXPECT_EQ(parse_duration_ns("2"), 2'000'000'000);
  EXPECT_EQ(parse_duration_ns("1.5s"), 1'500'000'000);
  EXPECT_EQ(parse_duration_ns(" 150 ms"), 150'000'000);
  EXPECT_EQ(parse_duration_ns("40us"), 40'000);
  EXPECT_EQ(parse_duration_ns("900NS"), 900);
  EXPECT_EQ(parse_duration_ns("0"), 0);
  for (const char* wrong : {"", "s", "-1", "1 min", "1e3", "1.2.3", "inf", "99999999999", "1ss"}) {
    EXPECT_EQ(parse_duration_ns(wrong), std::nullopt) << wrong;
  }
}

TEST(Units, SizesAreBinary) {
  EXPECT_EQ(format_bytes(0), "0 B");
  EXPECT_EQ(format_bytes(1023), "1023 B");
  EXPECT_EQ(format_bytes(1024), "1.00 KiB");
  EXPECT_EQ(format_bytes(80 * kGiB), "80.0 GiB");
}

TEST(Units, FractionsAreNotClamped) {
  EXPECT_EQ(format_fraction(0.713), "71.3 %");
  EXPECT_EQ(format_fraction(0.0519), "5.19 %");
  EXPECT_EQ(format_fraction(3.42), "342 %");
  EXPECT_EQ(format_fraction(-0.000001), "0.00 %");
}

TEST(Units, AChangeOfNothingHasNoSign) {
  EXPECT_EQ(format_change(0.0123), "+1.2 %");
  EXPECT_EQ(format_change(-0.0123, 2), "-1.23 %");
  EXPECT_EQ(format_change(-0.0004), "0.0 %");
  EXPECT_EQ(format_change(0, 2), "0.00 %");
}

TEST(Units, CountsAndNounsAgree) {
  EXPECT_EQ(count_of(1, "step"), "1 step");
  EXPECT_EQ(count_of(0, "step"), "0 steps");
  EXPECT_EQ(count_of(2, "process"), "2 processes");
  EXPECT_EQ(count_of(2, "launch"), "2 launches");
  EXPECT_EQ(count_of(2, "copy"), "2 copies");
  EXPECT_EQ(count_of(2, "key"), "2 keys");
}

}  // namespace
}  // namespace gpuwhy
