// SPDX-License-Identifier: Apache-2.0
#include "analysis/rank_rows.h"

#include "testing.h"

namespace gpuwhy {
namespace {

// Two files of one GPU each.
Analysis two_files(std::optional<std::int64_t> first, std::optional<std::int64_t> second) {
  Analysis analysis;
  analysis.capture.files.resize(2);
  analysis.devices.resize(2);
  for (std::size_t i = 0; i < 2; ++i) {
    analysis.devices[i].device = "cuda:" + std::to_string(i);
    analysis.devices[i].num_kernels = 1;
    analysis.capture.files[i].devices = {analysis.devices[i].device};
    analysis.capture.files[i].rank = i == 0 ? first : second;
  }
  return analysis;
}

std::pair<std::int64_t, std::int64_t> ranks_of(const std::vector<RankSummary>& summaries) {
  return {summaries.at(0).identity.rank, summaries.at(1).identity.rank};
}

TEST(SummariseRanks, FilesHaveTheRanksThatTheyTell) {
  auto summaries = summarise_ranks(two_files(3, 7), {}, {});
  EXPECT_EQ(ranks_of(summaries), std::pair(std::int64_t{3}, std::int64_t{7}));
  EXPECT_EQ(summaries[0].identity.num_ranks, 0);  // there must be others
  summaries = summarise_ranks(two_files(1, 0), {}, {});
  EXPECT_EQ(ranks_of(summaries), std::pair(std::int64_t{1}, std::int64_t{0}));
  EXPECT_EQ(summaries[0].identity.num_ranks, 2);
  RankIdentity told;
  told.num_ranks = 16;
  EXPECT_EQ(summarise_ranks(two_files(3, 7), {}, told)[0].identity.num_ranks, 16);
  // One that tells nothing, and two that tell the same: in the order of files.
  for (const auto& files : {two_files(3, std::nullopt), two_files(3, 3)}) {
    summaries = summarise_ranks(files, {}, {});
    EXPECT_EQ(ranks_of(summaries), std::pair(std::int64_t{0}, std::int64_t{1}));
    EXPECT_EQ(summaries[0].identity.num_ranks, 2);
  }
}

TEST(SummariseRanks, AToldRankWinsOverTheRecording) {
  Analysis analysis;
  analysis.capture.rank = 5;
  analysis.capture.world_size = 8;
  analysis.capture.utc_ns = 1'800'000'000'000'000'000;
  RankIdentity told;
  EXPECT_EQ(summarise_ranks(analysis, {}, told).at(0).identity.rank, 5);
  told.is_rank_told = true;
  told.rank = 0;
  const RankIdentity identity = summarise_ranks(analysis, {}, told).at(0).identity;
  EXPECT_EQ(identity.rank, 0);
  EXPECT_EQ(identity.num_ranks, 8);
  EXPECT_EQ(identity.started_unix_s, 1'800'000'000);
}

TEST(SummariseRanks, TheEngineIsNamedWhereTheRecordingTells) {
  Analysis analysis;
  analysis.engine = "vLLM";
  EXPECT_EQ(summarise_ranks(analysis, {}, {}).at(0).identity.engine, "vllm");
  analysis.engine = "PyTorch's profiler";
  EXPECT_EQ(summarise_ranks(analysis, {}, {}).at(0).identity.engine, "");
  analysis.engine = "Megatron's training schedule";
  EXPECT_EQ(summarise_ranks(analysis, {}, {}).at(0).identity.engine, "megatron");
  RankIdentity told;
  told.engine = "own";
  EXPECT_EQ(summarise_ranks(analysis, {}, told).at(0).identity.engine, "own");
}

}  // namespace
}  // namespace gpuwhy
