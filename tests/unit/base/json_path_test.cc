// SPDX-License-Identifier: Apache-2.0
#include "base/json_path.h"

#include <nlohmann/json.hpp>

#include "testing.h"

namespace gpuwhy {
namespace {

const Json kDocument = Json::parse(R"({
  "capture": {"kernel_ns": 7},
  "rows": [{"stage": "prefill", "device": "cuda:0", "n": 1},
           {"stage": "decode", "device": "cuda:0", "n": 2},
           {"stage": "decode", "device": "cuda:1", "n": 3},
           {"stage": "a,b]=\"\\\n", "device": "x", "n": 4},
           {"stage": "", "device": "x", "n": 5}]})");

const Json* at(std::string_view path) {
  return find_path(kDocument, parse_path(path));
}

TEST(JsonPath, ChoosesRowsByWhatTheyHold) {
  EXPECT_EQ(*at("capture.kernel_ns"), Json(7));
  EXPECT_EQ(*at("rows[stage=decode].n"), Json(2)) << "the first that fits";
  EXPECT_EQ(*at("rows[stage=decode,device=cuda:1].n"), Json(3));
  EXPECT_EQ(*at("rows[2].n"), Json(3));
  EXPECT_EQ(*at("rows[n=2].device"), Json("cuda:0"));
}

TEST(JsonPath, WhatIsNotThereIsNull) {
  for (const char* path :
       {"nosuch", "capture.nosuch", "capture[0]", "rows[9]", "rows[stage=vision]", "rows[nosuch=1]",
        "capture.kernel_ns.deeper", "rows.n"}) {
    EXPECT_EQ(at(path), nullptr) << path;
  }
}

TEST(JsonPath, EveryRowCanBeNamed) {
  for (const Json& row : kDocument.at("rows")) {
    const auto text = [&](const char* key) { return path_value(row.at(key).get<std::string>()); };
    const std::string path = "rows[stage=" + text("stage") + ",device=" + text("device") + "].n";
    ASSERT_NE(at(path), nullptr) << path;
    EXPECT_EQ(*at(path), row.at("n")) << path;
  }
}

TEST(JsonPath, RefusesWhatIsNoPath) {
  for (const char* path :
       {"", ".", "a.", ".a", "a..b", "a[", "a[]", "a[x]", "a[1", "a[1]b", "a[x=", "a[x=\"]",
        "a[x=\"\\q\"]", "a[-1]", "a[1,2=3]x", "a[99999999999999999999]"}) {
    expect_error([&] { parse_path(path); }, ErrorKind::kUsage, testing::HasSubstr("not a key"),
                 testing::HasSubstr("keys look like"));
  }
}

TEST(JsonPath, ThePatternLeavesRowsOut) {
  EXPECT_EQ(path_pattern(parse_path("rows[stage=decode].buckets_ns.sync")),
            "rows[].buckets_ns.sync");
  EXPECT_EQ(path_pattern(parse_path("capture.kernel_ns")), "capture.kernel_ns");
}

}  // namespace
}  // namespace gpuwhy
