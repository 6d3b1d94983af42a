// SPDX-License-Identifier: Apache-2.0
#include "base/parse_number.h"

#include "testing.h"

namespace gpuwhy {
namespace {

TEST(ParsePrice, TakesAnAmountAndNothingElse) {
  EXPECT_EQ(parse_price("2.50"), 2.5);
  EXPECT_EQ(parse_price("3"), 3.0);
  for (const char* text : {"", "0", "-1", "2.50$", "$2", "1e3", "nan", "inf", "1000000", "2,50"}) {
    EXPECT_EQ(parse_price(text), std::nullopt) << text;
  }
}

}  // namespace
}  // namespace gpuwhy
