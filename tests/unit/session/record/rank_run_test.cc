// SPDX-License-Identifier: Apache-2.0
#include "session/record/rank_run.h"

#include "base/error.h"
#include "session/writing/rank_folder.h"
#include "testing.h"

namespace gpuwhy {
namespace {

TEST(RankRun, WhoIsCaptured) {
  const std::vector<std::string> wish = {"0,7,every:64"};
  for (const auto& [rank, is_wanted] :
       {std::pair(0, true), {7, true}, {64, true}, {128, true}, {1, false}, {63, false}}) {
    EXPECT_EQ(is_captured(wish, rank), is_wanted) << rank;
  }
  EXPECT_TRUE(is_captured({"all"}, 5));
  EXPECT_TRUE(is_captured({"3", "5"}, 5));
  for (const char* bad : {"every:0", "every:", "-1", "1,,2", "first", ""}) {
    EXPECT_THROW(is_captured({bad}, 0), Error) << bad;
  }
}

// Ranks wait for each other: ranks that are not recorded start the program as often as those that
// are.
TEST(RankRun, AllRanksStartTheProgramEquallyOften) {
  LaunchedRank rank;
  rank.rank = 1;
  RunOptions options;
  options.has_baseline = options.has_nsys = options.has_ncu = true;
  options.captured_ranks = {"0"};
  std::vector<std::string> notes;
  RunOptions bare = options;
  choose_rank_passes(rank, bare, notes);
  EXPECT_TRUE(bare.has_baseline && bare.has_companion);
  EXPECT_FALSE(bare.has_nsys || bare.has_ncu);
  rank.rank = 0;
  RunOptions captured = options;
  choose_rank_passes(rank, captured, notes);
  EXPECT_TRUE(captured.has_baseline && captured.has_nsys);
  EXPECT_FALSE(captured.has_companion || captured.has_ncu);
}

TEST(RankRun, FoldersSayWhoseTheyAre) {
  EXPECT_EQ(rank_folder({7, 0}), "rank-000007");
  EXPECT_EQ(rank_folder({12'345'678, 2}), "rank-12345678-attempt-2");
  for (const RankPlace& place : {RankPlace{7, 0}, RankPlace{12'345'678, 2}}) {
    const auto back = rank_of_folder(rank_folder(place));
    ASSERT_TRUE(back);
    EXPECT_EQ(back->rank, place.rank);
    EXPECT_EQ(back->attempt, place.attempt);
  }
  for (const char* other : {"rank-", "rank-x", "rank-1-attempt-", "rank-1-attempt-x", "nsys"}) {
    EXPECT_FALSE(rank_of_folder(other)) << other;
  }
}

}  // namespace
}  // namespace gpuwhy
