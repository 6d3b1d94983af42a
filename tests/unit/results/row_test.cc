// SPDX-License-Identifier: Apache-2.0
#include "results/row.h"

#include "results/stage_role.h"
#include "testing.h"

namespace gpuwhy {
namespace {

TEST(Row, TextAndNameAreOneToOne) {
  for (std::size_t i = 0; i < kRowWords.size(); ++i) {
    EXPECT_EQ(row_name(kRowWords[i]), RowName{static_cast<RowKind>(i)});
    EXPECT_EQ(row_name(kRowWords[i]).text(), kRowWords[i]);
  }
  EXPECT_EQ(row_name("decode"), (RowName{RowKind::kStage, "decode"}));
  EXPECT_EQ(row_name("Capture").kind, RowKind::kStage) << "words are exact";
  EXPECT_LT(row_name("capture"), row_name("decode")) << "in the order of texts";
  EXPECT_LT(row_name("decode"), row_name("outside"));
}

TEST(Row, AWordIsNoStageOfAUser) {
  for (const std::string& word : kRowWords) {
    expect_error([&] { parse_stage_name(word, "--mark"); }, ErrorKind::kUsage,
                 testing::HasSubstr("--mark cannot name a stage '" + word + "'"),
                 testing::HasSubstr("my_"));
  }
  EXPECT_EQ(parse_stage_name("decode", "--mark"), row_name("decode"));
}

TEST(Row, AWordInARecordingGetsAnotherText) {
  for (const std::string& word : kRowWords) {
    EXPECT_EQ(recorded_stage(word), (RowName{RowKind::kStage, word + " (marked)"}));
  }
  EXPECT_EQ(recorded_stage("decode"), row_name("decode"));
}

TEST(Row, ARoleIsThatOfAStage) {
  EXPECT_EQ(role_of(row_name("prefill")), StageRole::kPrefill);
  EXPECT_EQ(role_of(row_name("warmup")), StageRole::kWarmUp);
  EXPECT_EQ(role_of(row_name("mine")), StageRole::kOther);
  EXPECT_EQ(role_of(row_name("all")), StageRole::kOther);
  EXPECT_TRUE(is_decode(row_name("decode_step")));
  EXPECT_FALSE(is_decode(row_name("prefill")));
  for (const char* name : {"all", "graph_capture", "idle", "warmup"}) {
    EXPECT_TRUE(is_without_work(row_name(name))) << name;
  }
  for (const char* name : {"", "capture", "steady", "decode", "draft"}) {
    EXPECT_FALSE(is_without_work(row_name(name))) << name;
  }
}

}  // namespace
}  // namespace gpuwhy
