// SPDX-License-Identifier: Apache-2.0
#include "config/reader.h"

#include "base/json.h"
#include "config/compose.h"
#include "testing.h"

namespace gpuwhy {
namespace {

class Reader : public testing::Test {
 protected:
  Reader() {
    config.tree = std::make_shared<Json>(
        Json{{"run", {{"gate", "auto"}, {"none", nullptr}, {"empty", ""}, {"n", 5}}},
             {"on", true},
             {"half", 0.5},
             {"list", {"a", "", "b c"}},
             {"mixed", {"a", 1}},
             {"map", {{"A", "x"}, {"B", 1}, {"C", true}}},
             {"large", UINT64_MAX},
             {"bad", "a\x1b[31m"}});
    config.origins = {{"run.gate", "override run.gate=auto"}};
  }

  template <typename Read>
  void expect_usage(Read read, const std::string& message, const std::string& hint = "") {
    expect_error(read, ErrorKind::kUsage, HasSubstr(message), HasSubstr(hint));
  }

  Config config;
  SettingsReader reader{config};
};

TEST_F(Reader, Values) {
  EXPECT_EQ(reader.text("run.gate"), "auto");
  EXPECT_THAT(reader.optional_text("run.gate"), Optional(std::string("auto")));
  EXPECT_EQ(reader.optional_text("run.none"), std::nullopt);
  EXPECT_TRUE(reader.flag("on"));
  EXPECT_EQ(reader.whole_from("run.n", 5), 5);
  EXPECT_THAT(reader.texts("list"), ElementsAre("a", "", "b c"));
  EXPECT_THAT(reader.text_map("map"),
              UnorderedElementsAre(Pair("A", "x"), Pair("B", "1"), Pair("C", "true")));
  EXPECT_EQ(reader.choice("run.gate", {"none", "auto"}), "auto");
}

TEST_F(Reader, WhatIsWrongIsNamedWithWhoSetIt) {
  expect_usage([&] { reader.flag("run.gate"); }, "run.gate takes true or false, not \"auto\"",
               "set by override run.gate=auto");
  expect_usage(
      [&] {
        reader.choice("run.gate", {"x", "y"});
      },
      "run.gate takes one of x, y", "set by override");
  expect_usage([&] { reader.text("run.n"); }, "run.n takes a text, not 5");
  expect_usage([&] { reader.text("run.empty"); }, "run.empty takes a text, not \"\"");
  expect_usage([&] { reader.optional_text("run.empty"); }, "run.empty takes a text");
  expect_usage([&] { reader.text("run.none"); }, "run.none takes a text, not null");
  expect_usage([&] { reader.flag("run.n"); }, "run.n takes true or false");
  expect_usage([&] { reader.whole_from("run.n", 6); },
               "run.n takes a whole number of at least 6, not 5");
  expect_usage([&] { reader.whole_from("half", 0); }, "half takes a whole number");
  expect_usage([&] { reader.whole_from("run.gate", 0); }, "run.gate takes a whole number");
  expect_usage([&] { reader.texts("run.gate"); }, "run.gate takes a list of texts");
  expect_usage([&] { reader.texts("mixed"); },
               "mixed takes a list of texts (quote a number: \"3\"), not [\"a\",1]");
  expect_usage([&] { reader.text_map("list"); }, "list takes a mapping");
  expect_usage([&] { reader.flag("run"); }, "run takes true or false");
}

TEST_F(Reader, KeysThatWereRemoved) {
  expect_usage([&] { reader.text("run.absent"); }, "run.absent is needed and was removed");
  expect_usage([&] { reader.optional_text("absent"); }, "absent is needed and was removed");
  expect_usage([&] { reader.flag("on.deeper"); }, "on.deeper is needed and was removed");
}

TEST_F(Reader, NumbersBeyondAllBoundsAreNotWrapped) {
  expect_usage([&] { reader.whole_from("large", 0); }, "large takes a whole number");
}

TEST_F(Reader, HostileValuesAreShownSafely) {
  expect_error([&] { reader.flag("bad"); }, ErrorKind::kUsage,
               AllOf(HasSubstr("[31m"), testing::Not(HasSubstr("\x1b"))), _);
}

}  // namespace
}  // namespace gpuwhy
