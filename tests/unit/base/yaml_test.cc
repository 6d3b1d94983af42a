// SPDX-License-Identifier: Apache-2.0
#include "base/yaml.h"

#include <random>

#include "base/json.h"
#include "testing.h"

namespace gpuwhy {
namespace {

TEST(Yaml, ScalarsFollowTheCoreSchema) {
  const Json value = parse_yaml(
      "a: 1\nb: -0x1F\nc: 0o17\nd: 2.5\ne: yes\nf: 'true'\ng: ~\nh:\ni: true\nj: 1e3\nk: 1.2.3\n"
      "l: .inf\nm: 99999999999999999999\nn: +7\n",
      "x.yaml");
  EXPECT_EQ(to_json_line(value),
            R"({"a":1,"b":-31,"c":15,"d":2.5,"e":"yes","f":"true","g":null,"h":null,"i":true,)"
            R"("j":1000.0,"k":"1.2.3","l":".inf","m":1e+20,"n":7})");
}

TEST(Yaml, ErrorsGiveThePlace) {
  expect_error([] { parse_yaml("a: 1\nb: [1, 2\n", "x.yaml"); }, ErrorKind::kInput,
               HasSubstr("x.yaml:3:1"), _);
  expect_error([] { parse_yaml("a: 1\nb: 2\na: 3\n", "x.yaml"); }, ErrorKind::kInput,
               "x.yaml:3:1: key 'a' is given twice", _);
  expect_error([] { parse_yaml("[a, b]: 1\n", "x.yaml"); }, ErrorKind::kInput,
               HasSubstr("a key must be plain text"), _);
  expect_error([] { parse_yaml("a: 1\n---\nb: 2\n", "x.yaml"); }, ErrorKind::kInput,
               HasSubstr("more than one document"), _);
}

TEST(Yaml, BombsAreRefused) {
  std::string laughs = "a0: &a0 [x, x, x, x, x, x, x, x, x]\n";
  for (int i = 1; i < 10; ++i) {
    const std::string before = "*a" + std::to_string(i - 1);
    std::string items = before;
    for (int j = 0; j < 8; ++j) {
      items += ", " + before;
    }
    laughs += "a" + std::to_string(i) + ": &a" + std::to_string(i) + " [" + items + "]\n";
  }
  expect_error([&] { parse_yaml(laughs, "x.yaml"); }, ErrorKind::kInput, HasSubstr("more than"), _);
  expect_error([] { parse_yaml(std::string(100'000, '['), "x.yaml"); }, ErrorKind::kInput,
               HasSubstr("x.yaml"), _);
  expect_error([] { parse_yaml(std::string(200, '[') + std::string(200, ']'), "x.yaml"); },
               ErrorKind::kInput, HasSubstr("nested deeper"), _);
  expect_error([] { parse_yaml("a: &a\n  b: *a\n", "x.yaml"); }, ErrorKind::kInput, _, _);
  expect_error([] { parse_yaml("a: \xff", "x.yaml"); }, ErrorKind::kInput,
               HasSubstr("not UTF-8 (at byte 3)"), _);
  expect_error([] { parse_yaml(std::string("r\0\0\0a", 5), "x.yaml"); }, ErrorKind::kInput,
               HasSubstr("not UTF-8 (at byte 1)"), _);
  expect_error([] { parse_yaml(R"(a: "x\N")", "x.yaml"); }, ErrorKind::kInput,
               HasSubstr("x.yaml:1:4: the escapes"), _);
  expect_error([] { parse_yaml(R"("\_": 1)", "x.yaml"); }, ErrorKind::kInput,
               HasSubstr("the escapes"), _);
  EXPECT_EQ(parse_yaml(R"("\x85\xa0\L")", "x.yaml"), "\xc2\x85\xc2\xa0\xe2\x80\xa8");
  // yaml-cpp finds empty documents in it for ever.
  expect_error([] { parse_yaml(",", "x.yaml"); }, ErrorKind::kInput, HasSubstr("one document"), _);
}

TEST(Yaml, KeysOfAMappingAreLimited) {
  std::string text;
  for (int i = 0; i < 4096; ++i) {
    text += "k" + std::to_string(i) + ": 0\n";
  }
  EXPECT_EQ(parse_yaml(text, "x").size(), 4096U);
  EXPECT_THROW(parse_yaml(text + "one: 0\n", "x"), Error);
}

TEST(Yaml, ATextThatEndsADocumentIsQuoted) {
  for (const char* text : {"...", "... x", "---", "--- x", "..", "a..."}) {
    EXPECT_EQ(parse_yaml(to_yaml_text(Json(text)), "x.yaml"), text);
  }
}

TEST(Yaml, DeceptiveTextIsWrittenAsEscapes) {
  const Json value = {{"a", "x\x1b[31m"},
                      {"b",
                       "\xe2\x80\xae"
                       "evil"}};
  const std::string text = to_yaml_text(value);
  EXPECT_EQ(text, "a: \"x\\u001b[31m\"\nb: \"\\u202eevil\"\n");
  EXPECT_EQ(parse_yaml(text, "x.yaml"), value);
}

TEST(Yaml, EmptyIsNull) {
  EXPECT_TRUE(parse_yaml("", "x.yaml").is_null());
  EXPECT_TRUE(parse_yaml("# only a comment\n", "x.yaml").is_null());
}

TEST(Yaml, WritesBlocksAndShortListsInline) {
  const Json value = {{"run", {{"mode", "light"}, {"n", 20}}},
                      {"trace", {"cuda", "nvtx"}},
                      {"rows", {{{"a", 1}, {"b", 2}}}},
                      {"none", nullptr},
                      {"empty", Json::object()},
                      {"list", Json::array()}};
  EXPECT_EQ(to_yaml_text(value),
            "run:\n  mode: light\n  n: 20\ntrace: [cuda, nvtx]\nrows:\n  -\n    a: 1\n    b: 2\n"
            "none: null\nempty: {}\nlist: []\n");
}

TEST(Yaml, LinesKnowTheirPath) {
  const auto lines = yaml_lines({{"run", {{"mode", "light"}}}});
  ASSERT_EQ(lines.size(), 2U);
  EXPECT_EQ(lines[0].path, "run");
  EXPECT_EQ(lines[1].path, "run.mode");
}

// Any tree we can hold must come back equal: strings that look like other types above all.
Json random_value(std::mt19937& random, int depth) {
  static const std::vector<std::string> kTexts = {
      "",     "true", "null", "~",    "1",     "1.5", "0x10", "a: b",     "# no",  "- x",
      " a",   "a ",   "a\nb", "\t",   "[x]",   "{y}", "&a",   "*a",       "!t",    "|",
      ">",    "'",    "\"",   "%a",   "@b",    "yes", "a,b",  "größer",   "=",     "a=b",
      "\x1b", "..",   "-",    "--x",  "1_000", "+1",  ".5",   "a #b",     "?",     "key: [",
      "0o7",  "1e5",  "NaN",  ".inf", "\\n",   "`",   "a:b",  "/usr/bin", "2022.4"};
  const auto pick = [&](std::size_t n) {
    return std::uniform_int_distribution<std::size_t>(0, n - 1)(random);
  };
  switch (pick(depth > 3 ? 4 : 6)) {
    case 0:
      return kTexts[pick(kTexts.size())];
    case 1:
      return static_cast<std::int64_t>(pick(2000)) - 1000;
    case 2:
      return pick(2) == 0 ? Json(nullptr) : Json(pick(2) == 0);
    case 3:
      return static_cast<double>(pick(1000)) / 8 + 0.0625;
    case 4: {
      Json list = Json::array();
      for (std::size_t n = pick(4); n > 0; --n) {
        list.push_back(random_value(random, depth + 1));
      }
      return list;
    }
    default: {
      Json map = Json::object();
      for (std::size_t n = pick(4); n > 0; --n) {
        map[kTexts[pick(kTexts.size())]] = random_value(random, depth + 1);
      }
      return map;
    }
  }
}

TEST(Yaml, WhatIsWrittenReadsBackEqual) {
  std::mt19937 random(20261114);
  for (int i = 0; i < 2000; ++i) {
    const Json value = {{"root", random_value(random, 0)}};
    const std::string text = to_yaml_text(value);
    ASSERT_EQ(parse_yaml(text, "x.yaml"), value) << text;
  }
}

}  // namespace
}  // namespace gpuwhy
