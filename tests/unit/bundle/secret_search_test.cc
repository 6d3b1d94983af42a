// SPDX-License-Identifier: Apache-2.0
//
// Keys here are made up, and put together from parts so that no scanner takes this file for a leak.
#include "bundle/secret_search.h"

#include "base/error.h"
#include "base/gzip_base64.h"
#include "base/json.h"
#include "bundle/json_with_duplicates.h"
#include "bundle/scrub_lines.h"
#include "temporary.h"
#include "testing.h"

namespace gpuwhy {
namespace {

const std::string kToken = "hf_" + std::string("AbCdEfGhIjKlMnOpQrStUvWxYz0123456789");

TEST(SecretValues, TheLongestThatFitsIsReplaced) {
  const SecretValues values({"secret-of-a", "secret-of-a-and-b", " padded-value\n", "tiny", ""});
  EXPECT_EQ(values.size(), 4U);
  EXPECT_EQ(values.without("x secret-of-a-and-b, secret-of-a! tiny padded-value"),
            "x [scrubbed], [scrubbed]! [scrubbed] [scrubbed]");
  EXPECT_FALSE(values.are_in("secret-of-"));
  EXPECT_FALSE(SecretValues().are_in("anything"));
}

class Search : public testing::Test {
 protected:
  bool has_found(const std::string& contents, const SecretValues& values = {}) {
    const auto file = directory.add("file", contents);
    return search_file(file, values).has_found;
  }
  TemporaryDirectory directory;
};

TEST_F(Search, ATokenIsFoundWhereverPiecesAndRunsEnd) {
  constexpr std::size_t kPiece = 1 << 20;
  for (const std::size_t before : {std::size_t{0}, kPiece - 60, kPiece - 20, kPiece - 1, kPiece}) {
    for (const char filler : {'x', ' ', '\0'}) {
      const std::string text =
          std::string(before, filler) + " token=" + kToken + " " + std::string(kPiece + 5, filler);
      EXPECT_TRUE(has_found(text)) << before << " times " << static_cast<int>(filler);
    }
  }
  EXPECT_FALSE(has_found(std::string(3 * kPiece, 'x')));
}

TEST_F(Search, AValueIsFoundAcrossPieces) {
  const SecretValues values({"no-shape-at-all"});
  EXPECT_TRUE(has_found(std::string((1 << 20) - 5, '\0') + "no-shape-at-all", values));
  EXPECT_TRUE(holds_value(directory.add("a.gz", gzipped("x no-shape-at-all")), values));
  const std::string page =
      "<!DOCTYPE html><script>" + base64(gzipped("x no-shape-at-all")) + "</script>";
  EXPECT_TRUE(holds_value(directory.add("page", page), values));
}

TEST_F(Search, MarkupNamesNoSecret) {
  EXPECT_FALSE(has_found("<!doctype html><td>password:</td><td>none</td></tr></table></body>"));
}

TEST_F(Search, WhatCannotBeReadIsAnError) {
  EXPECT_THROW(search_file(directory.path() / "nothing", {}), Error);
  EXPECT_THROW(search_file("/proc/self/mem", {}), Error);
}

TEST(LineScrubber, APrivateKeyWithoutAnEndStopsSomewhere) {
  LineScrubber lines(LineScrubber::Form::kText);
  EXPECT_EQ(lines.clean("-----BEGIN PRIVATE " + std::string("KEY-----"), {}), "[scrubbed]");
  EXPECT_EQ(lines.clean("  MIIE", {}), "  [scrubbed]");
  for (int i = 0; i < 1000; ++i) {
    lines.clean("x", {});
  }
  EXPECT_EQ(lines.clean("fine", {}), "fine");
}

TEST(WholeJson, KeysGivenTwiceAreBothKept) {
  const std::string text = R"({"a":1,"b":[{"c":null}],"a":{"d":-2.5,"e":"x"}})";
  EXPECT_EQ(to_json_line(parse_whole_json(text, "test")), text);
  EXPECT_THROW(parse_whole_json("{\"a\": NaN}", "test"), Error);
  EXPECT_THROW(parse_whole_json(std::string(200, '['), "test"), Error);
}

}  // namespace
}  // namespace gpuwhy
