// SPDX-License-Identifier: Apache-2.0
#include "base/json_page.h"

#include "base/json.h"
#include "testing.h"

namespace gpuwhy {
namespace {

constexpr std::int64_t kTokens = kLeastTokens;

Json page(const Json& document, const std::string& after, std::int64_t max_tokens = kTokens) {
  const std::string text = json_page(document, {max_tokens, after});
  EXPECT_LE(text.size(), static_cast<std::size_t>(max_tokens) * kBytesPerToken);
  return Json::parse(text);
}

Json rows(int count) {
  Json document = {{"rows", Json::array()}, {"last", true}};
  for (int i = 0; i < count; ++i) {
    document["rows"].push_back({{"name", "a row"}, {"i", i}});
  }
  return document;
}

TEST(JsonPage, IsTheWholeDocumentWhereThatFits) {
  const Json document = rows(3);
  const Json only = page(document, "");
  EXPECT_EQ(only["value"], document);
  EXPECT_EQ(only["from"], "");
  EXPECT_TRUE(only["next"].is_null());
}

TEST(JsonPage, KeepsRowsWholeAndInOrder) {
  const Json document = rows(100);
  std::string after;
  std::vector<int> seen;
  int num_pages = 0;
  bool has_last = false;
  do {
    const Json one = page(document, after);
    EXPECT_EQ(one["from"], after);
    for (const Json& row : one["value"].value("rows", Json::array())) {
      ASSERT_EQ(row.size(), 2U);
      seen.push_back(row["i"]);
    }
    has_last = one["value"].contains("last");
    after = one["next"].is_null() ? "" : one["next"].get<std::string>();
    ++num_pages;
  } while (!after.empty());
  ASSERT_EQ(seen.size(), 100U);
  for (int i = 0; i < 100; ++i) {
    EXPECT_EQ(seen[static_cast<std::size_t>(i)], i);
  }
  EXPECT_TRUE(has_last);
  EXPECT_GT(num_pages, 3);
}

TEST(JsonPage, DividesARowThatNoPageHolds) {
  const Json document = {{"a/b~", {{{"x", std::string(300, 'x')}, {"y", std::string(300, 'y')}}}}};
  const Json first = page(document, "");
  EXPECT_EQ(first["next"], "/a~1b~0/0/y");
  EXPECT_EQ(first["value"]["a/b~"][0], Json({{"x", std::string(300, 'x')}}));
  const Json second = page(document, "/a~1b~0/0/y");
  EXPECT_EQ(second["value"]["a/b~"][0], Json({{"y", std::string(300, 'y')}}));
  EXPECT_TRUE(second["next"].is_null());
}

TEST(JsonPage, CutsATextThatNoPageHolds) {
  std::string text;
  for (int i = 0; i < 1000; ++i) {
    text += "\u00e9";
  }
  const Json only = page({{"text", text}}, "");
  const auto shown = only["value"]["text"].get<std::string>();
  EXPECT_TRUE(shown.ends_with("... (2000 bytes)")) << shown;
  EXPECT_EQ(shown.find("\ufffd"), std::string::npos) << "not inside a character";
  EXPECT_TRUE(only["next"].is_null());
}

TEST(JsonPage, RefusesWhatIsNotThere) {
  for (const char* after :
       {"/rows/3", "/rows/-1", "/rows/x", "/nothing", "rows", "/rows/0/i/0", "/"}) {
    expect_error([&] { page(rows(3), after); }, ErrorKind::kUsage, testing::HasSubstr("no address"),
                 testing::_);
  }
  expect_error([&] { page(rows(3), "", kLeastTokens - 1); }, ErrorKind::kUsage,
               testing::HasSubstr("too small"), testing::_);
  expect_error(
      [&] {
        page({{std::string(5000, 'k'), 1}}, "");
      },
      ErrorKind::kUsage, testing::HasSubstr("too small"), testing::_);
}

}  // namespace
}  // namespace gpuwhy
