// SPDX-License-Identifier: Apache-2.0
#include "base/json.h"

#include <ctime>

#include "testing.h"

namespace gpuwhy {
namespace {

TEST(Json, KeepsOrderAndDigits) {
  const Json value = parse_json(R"({"z": 9007199254740993, "a": [1, 0.5, null]})", "x.json");
  EXPECT_EQ(to_json_line(value), R"({"z":9007199254740993,"a":[1,0.5,null]})");
}

TEST(Json, InvalidBytesAreReplacedNotThrown) {
  EXPECT_EQ(to_json_line(Json("a\xff"
                              "b")),
            "\"a\xef\xbf\xbd"
            "b\"");
}

TEST(Json, ALineOfFieldsKeepsTheirOrderAndTypes) {
  EXPECT_EQ(json_object_line({{"word", "a\xff"},
                              {"bytes", std::int64_t{-3}},
                              {"held", std::make_shared<Json>(Json{{"b", {1, 2}}})},
                              {"absent", SharedJson()}}),
            "{\"word\":\"a\xef\xbf\xbd\",\"bytes\":-3,\"held\":{\"b\":[1,2]},\"absent\":null}");
}

TEST(Json, BadInputIsNamed) {
  expect_error([] { parse_json("{\"a\": }", "x.json"); }, ErrorKind::kInput,
               HasSubstr("x.json is not valid JSON"), _);
  expect_error([] { parse_json("", "x.json"); }, ErrorKind::kInput, HasSubstr("x.json"), _);
  expect_error([] { parse_json("[1e999]", "x.json"); }, ErrorKind::kInput, HasSubstr("x.json"), _);
}

TEST(Json, DepthIsLimited) {
  const std::string deep = std::string(1'000'000, '[') + std::string(1'000'000, ']');
  expect_error([&] { parse_json(deep, "deep.json"); }, ErrorKind::kInput,
               HasSubstr("nested deeper"), _);
}

TEST(Json, DepthIsThatOfBracketsOutsideOfTexts) {
  const std::string deep = std::string(kDeepestJson, '[') + std::string(kDeepestJson, ']');
  EXPECT_EQ(parse_json(deep, "x").size(), 1);
  EXPECT_THROW(parse_json("[" + deep + "]", "x"), Error);
  const std::string text = R"(\"{[:)" + std::string(1000, '[') + std::string(10'000, ':') + R"(\\)";
  EXPECT_EQ(parse_json("[\"" + text + "\", {\"" + text + "\": []}]", "x").size(), 2);
}

TEST(Json, IntegersAreNeverMadeOfOtherNumbers) {
  for (const char* text : {"-1.5", "1e30", "4.0", "9223372036854775808", "18446744073709551615",
                           "\"1\"", "true", "null", "[1]"}) {
    EXPECT_FALSE(json_integer(parse_json(text, "x"))) << text;
  }
  EXPECT_EQ(json_integer(parse_json("9223372036854775807", "x")), INT64_MAX);
  EXPECT_EQ(json_integer(parse_json("-9223372036854775808", "x")), INT64_MIN);
  EXPECT_EQ(json_integer(parse_json("0", "x")), 0);
}

// The square of 100,000 would take minutes with sanitizers.
TEST(Json, ManyObjectsTakeTimeInProportion) {
  std::string text = "[0";
  for (int i = 0; i < 100'000; ++i) {
    text += R"(,{"a":[],"b":{}})";
  }
  const std::clock_t start = std::clock();
  EXPECT_EQ(parse_json(text + "]", "x").size(), 100'001);
  EXPECT_LT(std::clock() - start, 20 * CLOCKS_PER_SEC);
}

TEST(Json, MembersOfAnObjectAreLimited) {
  const auto object_of = [](std::size_t num_members) {
    std::string text = R"({"first": {"a": 1}, "second": {)";
    for (std::size_t i = 0; i < num_members; ++i) {
      text += (i == 0 ? "\"k" : ", \"k") + std::to_string(i) + "\": 0";
    }
    return text + "}}";
  };
  EXPECT_EQ(parse_json(object_of(kMostMembers), "x").at("second").size(), kMostMembers);
  EXPECT_THROW(parse_json(object_of(kMostMembers + 1), "x"), Error);
}

TEST(Json, DocumentsSayWhatTheyAre) {
  EXPECT_EQ(to_json_text(json_document("doctor", 1)),
            "{\n  \"schema\": \"gpuwhy.doctor\",\n  \"schema_version\": 1\n}\n");
}

}  // namespace
}  // namespace gpuwhy
