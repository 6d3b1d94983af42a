// SPDX-License-Identifier: Apache-2.0
#include "base/gzip_base64.h"

#include "base/error.h"
#include "testing.h"

namespace gpuwhy {
namespace {

// The vectors of RFC 4648, section 10.
TEST(Packed, Base64IsThatOfTheStandard) {
  EXPECT_EQ(base64(""), "");
  EXPECT_EQ(base64("f"), "Zg==");
  EXPECT_EQ(base64("fo"), "Zm8=");
  EXPECT_EQ(base64("foo"), "Zm9v");
  EXPECT_EQ(base64("foobar"), "Zm9vYmFy");
  EXPECT_EQ(base64(std::string("\xff\x00\xfe", 3)), "/wD+");
}

TEST(Packed, GzipIsSmallAndAlwaysTheSame) {
  const std::string text(100'000, 'x');
  const std::string packed = gzipped(text);
  EXPECT_LT(packed.size(), 1000U);
  EXPECT_EQ(packed.substr(0, 2), "\x1f\x8b");
  EXPECT_EQ(packed, gzipped(text));
  EXPECT_EQ(packed.substr(4, 4), std::string(4, '\0'));  // RFC 1952: MTIME, none
  EXPECT_GT(gzipped("").size(), 17U);
}

TEST(Packed, WhatIsPackedComesBack) {
  for (const std::string& bytes :
       {std::string(), std::string("\xff\x00\xfe", 3), std::string(300'000, 'x')}) {
    EXPECT_EQ(from_base64(base64(bytes)), bytes);
    EXPECT_EQ(gunzipped(gzipped(bytes), 300'000), bytes);
  }
  EXPECT_THROW(gunzipped(gzipped(std::string(1'000'000, 'x')), 300'000), Error);
  EXPECT_THROW(gunzipped(gzipped("abc").substr(0, 12), 300'000), Error);
  EXPECT_THROW(gunzipped("", 300'000), Error);
}

}  // namespace
}  // namespace gpuwhy
