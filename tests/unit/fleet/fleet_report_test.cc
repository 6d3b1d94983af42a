// SPDX-License-Identifier: Apache-2.0
#include "fleet/merge/fleet_report.h"

#include "fleet/merge/merge.h"
#include "fleet/summary/summary_file.h"
#include "testing.h"

namespace gpuwhy {
namespace {

RankSummary rank_of(std::int64_t rank, std::int64_t gemm_ns, std::int64_t norm_ns) {
  RankSummary summary;
  summary.identity.run_id = "run";
  summary.identity.rank = rank;
  summary.identity.num_ranks = 8;
  summary.identity.node = rank < 4 ? "a" : "b";
  summary.stages.resize(1);
  summary.stages[0].stage = "decode";
  summary.kernels = {{{"decode", "gemm", "gemm"}, {10, 10 * gemm_ns, gemm_ns, gemm_ns}},
                     {{"decode", "norm", "norm"}, {10, 10 * norm_ns, norm_ns, norm_ns}}};
  return summary;
}

FleetSummary merged(const std::vector<RankSummary>& ranks) {
  FleetMerge merge;
  for (const RankSummary& rank : ranks) {
    merge.add(summary_bytes(rank));
  }
  return merge.finish();
}

TEST(FleetReport, NamesMissingRanks) {
  const FleetReport report =
      report_fleet(merged({rank_of(1, 100, 10), rank_of(4, 100, 10), rank_of(5, 100, 10)}));
  EXPECT_EQ(report.presence.num_expected, 8);
  EXPECT_THAT(report.presence.missing, ElementsAre("0", "2-3", "6-7"));
  EXPECT_EQ(report.presence.num_missing, 5);
}

// Three ranks, one collective, clocks that have nothing to do with each other.
TEST(FleetReport, TellsWaitingFromTransfer) {
  std::vector<RankSummary> ranks = {rank_of(0, 100, 10), rank_of(1, 100, 10), rank_of(2, 900, 10)};
  ranks[0].collectives = {{"w", 0, "decode", "nccl", 5, 70},
                          {"alone", 0, "decode", "nccl", 99, 11}};
  ranks[1].collectives = {{"w", 0, "decode", "nccl", 900'000, 50}};
  ranks[2].collectives = {{"w", 0, "decode", "nccl", 0, 20}};
  const FleetReport report = report_fleet(merged(ranks));
  EXPECT_EQ(report.collectives.total_ns, 151);
  EXPECT_EQ(report.collectives.transfer_ns, 60);
  EXPECT_EQ(report.collectives.waiting_ns, 80);
  EXPECT_EQ(report.collectives.alone_ns, 11);
  EXPECT_EQ(report.collectives.num_alone, 1);
  EXPECT_EQ(report.ranks[0].collectives.total_ns, 81);
  EXPECT_EQ(report.ranks[0].collectives.waiting_ns, 50);
  EXPECT_EQ(report.ranks[0].collectives.alone_ns, 11);
  EXPECT_EQ(report.ranks[1].collectives.waiting_ns, 30);
  EXPECT_EQ(report.ranks[2].collectives.waiting_ns, 0);
  EXPECT_EQ(report.ranks[2].num_last, 1);
  EXPECT_EQ(report.ranks[2].caused_ns, 80);
  EXPECT_EQ(report.ranks[report.stragglers[0]].rank, 2);
}

// Rank 3 is slow. Rank 2 waits for it in their pair and is late at the next collective of all, with
// it: what all others wait there is rank 3's.
TEST(FleetReport, LatenessIsTracedToWhereItBegan) {
  std::vector<RankSummary> ranks = {rank_of(0, 100, 10), rank_of(1, 100, 10), rank_of(2, 100, 10),
                                    rank_of(3, 200, 10)};
  ranks[0].collectives = {{"all", 0, "decode", "nccl", 0, 105},
                          {"pair a", 0, "decode", "nccl", 0, 5}};
  ranks[1].collectives = {{"all", 0, "decode", "nccl", 0, 105},
                          {"pair a", 0, "decode", "nccl", 0, 6}};
  ranks[2].collectives = {{"all", 0, "decode", "nccl", 0, 5},
                          {"pair b", 0, "decode", "nccl", 0, 105}};
  ranks[3].collectives = {{"all", 0, "decode", "nccl", 0, 5},
                          {"pair b", 0, "decode", "nccl", 0, 5}};
  const FleetReport report = report_fleet(merged(ranks));
  EXPECT_EQ(report.ranks[2].caused_ns, 200);  // a tie, and it is the lowest
  EXPECT_EQ(report.ranks[2].blamed_ns, 0);
  EXPECT_EQ(report.ranks[3].caused_ns, 100);
  EXPECT_EQ(report.ranks[3].blamed_ns, 301);  // rank 0 waited for it too, and caused 1
  EXPECT_EQ(report.ranks[report.stragglers[0]].rank, 3);
  EXPECT_TRUE(report.ranks[3].is_straggler);
  EXPECT_FALSE(report.ranks[2].is_straggler);
}

// In one group, what the late rank waited for others is not time that others waited for it.
TEST(FleetReport, WaitingInOneGroupStaysWithItsCause) {
  std::vector<RankSummary> ranks = {rank_of(0, 100, 10), rank_of(1, 100, 10)};
  ranks[0].collectives = {{"all", 0, "decode", "nccl", 0, 105},
                          {"all", 1, "decode", "nccl", 0, 5},
                          {"all", 2, "decode", "nccl", 0, 65}};
  ranks[1].collectives = {{"all", 0, "decode", "nccl", 0, 5},
                          {"all", 1, "decode", "nccl", 0, 85},
                          {"all", 2, "decode", "nccl", 0, 5}};
  const FleetReport report = report_fleet(merged(ranks));
  EXPECT_EQ(report.ranks[0].blamed_ns, 80);
  EXPECT_EQ(report.ranks[1].blamed_ns, 160);
}

TEST(FleetReport, ASlowGpuIsNoSlowKernelAndTheOtherWayRound) {
  std::vector<RankSummary> ranks;
  for (std::int64_t rank = 0; rank < 8; ++rank) {
    ranks.push_back(rank_of(rank, rank == 2 ? 200'000 : 100'000, rank == 2 ? 2'000 : 1'000));
  }
  FleetReport report = report_fleet(merged(ranks));
  EXPECT_TRUE(report.kernels.empty());
  EXPECT_TRUE(report.ranks[2].is_straggler);
  ranks[2] = rank_of(2, 100'000, 2'000);
  report = report_fleet(merged(ranks));
  ASSERT_EQ(report.kernels.size(), 1U);
  EXPECT_EQ(report.kernels[0].kernel, "norm");
  EXPECT_EQ(report.kernels[0].worst_rank, 2);
  EXPECT_EQ(report.kernels[0].num_slow, 1);
  EXPECT_FALSE(report.ranks[2].is_straggler);
}

TEST(FleetReport, SaysWhatMadeARankLate) {
  const std::vector<RankSummary> ranks = {rank_of(0, 100, 10), rank_of(1, 100, 10),
                                          rank_of(2, 150, 10)};
  const auto reason = straggler_cause(merged(ranks), ranks[2]);
  ASSERT_TRUE(reason);
  EXPECT_EQ(reason->stage, "decode");
  EXPECT_EQ(reason->kernel, "gemm");
  EXPECT_EQ(reason->kernel_excess_ns, 500);
  EXPECT_EQ(reason->excess_ns, 500);
  EXPECT_DOUBLE_EQ(reason->kernel_ratio, 1.5);
  EXPECT_DOUBLE_EQ(reason->own_share_fraction, 1);
  EXPECT_FALSE(straggler_cause(merged({ranks[0]}), ranks[0]));
}

// ranks.capture=every:4 of a job with collectives: host times are the same on all ranks.
TEST(FleetReport, FewRanksWithKernelsAreComparedIfTheJobCommunicates) {
  std::vector<RankSummary> ranks;
  for (std::int64_t rank = 0; rank < 8; ++rank) {
    ranks.push_back(rank_of(rank, rank == 4 ? 130 : 100, 10));
    ranks.back().stages[0].total_ns = 5000;
    ranks.back().collectives = {{"w", 0, "decode", "nccl", 0, rank == 4 ? 5 : 35}};
    if (rank != 0 && rank != 4 && rank != 7) {
      ranks.back().kernels.clear();
      ranks.back().collectives.clear();
    }
  }
  const FleetReport report = report_fleet(merged(ranks));
  EXPECT_EQ(report.quantity, "compute kernels");
  EXPECT_EQ(report.num_measured, 3);
  EXPECT_EQ(report.ranks[report.stragglers[0]].rank, 4);
  EXPECT_NEAR(*report.ranks[4].deviation_fraction, 0.27, 0.01);
}

TEST(FleetReport, RanksWithoutKernelsAreComparedByTheHost) {
  std::vector<RankSummary> ranks;
  for (std::int64_t rank = 0; rank < 8; ++rank) {
    RankSummary summary = rank_of(rank, 0, 0);
    summary.kernels.clear();
    summary.stages[0].total_ns = rank == 5 ? 150 : 100;
    ranks.push_back(summary);
  }
  const FleetReport report = report_fleet(merged(ranks));
  EXPECT_EQ(report.quantity, "stages on the host");
  EXPECT_DOUBLE_EQ(*report.ranks[5].deviation_fraction, 0.5);
  EXPECT_EQ(report.ranks[report.stragglers[0]].rank, 5);
  EXPECT_TRUE(report.ranks[5].is_straggler);
}

}  // namespace
}  // namespace gpuwhy
