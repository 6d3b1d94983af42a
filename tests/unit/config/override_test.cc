// SPDX-License-Identifier: Apache-2.0
#include "config/override.h"

#include "base/json.h"
#include "testing.h"

namespace gpuwhy {
namespace {

std::string value_of(const std::string& argument) {
  return to_json_line(parse_value(parse_override(argument)));
}

TEST(Override, TakesTheFourForms) {
  EXPECT_EQ(parse_override("run.mode=light").action, Override::Action::kSet);
  EXPECT_EQ(parse_override("+a.b=1").action, Override::Action::kAdd);
  EXPECT_EQ(parse_override("++a.b=1").key, "a.b");
  EXPECT_EQ(parse_override("~a.b").action, Override::Action::kRemove);
  EXPECT_EQ(parse_override("profiling/ncu=./my.yaml").value, "./my.yaml");
}

TEST(Override, ValuesAreYaml) {
  EXPECT_EQ(value_of("k=light"), "\"light\"");
  EXPECT_EQ(value_of("k=12"), "12");
  EXPECT_EQ(value_of("k=true"), "true");
  EXPECT_EQ(value_of("k=null"), "null");
  EXPECT_EQ(value_of("k="), "\"\"");
  EXPECT_EQ(value_of("k='12'"), "\"12\"");
  EXPECT_EQ(value_of("k=[cuda, nvtx]"), "[\"cuda\",\"nvtx\"]");
  EXPECT_EQ(value_of("k={a: [1, {b: 2}]}"), "{\"a\":[1,{\"b\":2}]}");
  EXPECT_EQ(value_of("k=a=b"), "\"a=b\"");
  EXPECT_EQ(value_of("k=note: this"), "\"note: this\"");
  EXPECT_EQ(value_of("k=-5"), "-5");
}

TEST(Override, RefusesWhatIsNone) {
  for (const char* argument : {"", "run.mode", "=x", "~", "~a=1", "+a", "a..b=1", ".a=1", "a.=1",
                               "a b=1", "a\x1b=1", "++="}) {
    expect_error([&] { parse_override(argument); }, ErrorKind::kUsage,
                 HasSubstr("is not an override"), HasSubstr("key.sub=value"));
  }
  expect_error([] { value_of("k=[1, 2"); }, ErrorKind::kUsage, HasSubstr("is not YAML"),
               HasSubstr("quote the whole argument"));
}

}  // namespace
}  // namespace gpuwhy
