// SPDX-License-Identifier: Apache-2.0
#include "fleet/summary/summary_file.h"

#include <algorithm>

#include "base/error.h"
#include "compare/statistics.h"
#include "fleet/summary/columnar_file.h"
#include "testing.h"

namespace gpuwhy {
namespace {

RankSummary small_summary() {
  RankSummary summary;
  summary.identity.run_id = "run-1";
  summary.identity.rank = 7;
  summary.identity.num_ranks = 16;
  summary.identity.node = "n3";
  summary.identity.exit_code = 143;
  summary.identity.communicators_by = "by kernel";
  StageSums decode;
  decode.stage = "decode";
  decode.window_ns = 100;
  decode.buckets_ns[0] = 60;
  decode.buckets_ns[10] = 40;
  decode.peak_bytes = 5;
  summary.stages = {decode};
  summary.kernels = {{{"decode", "z", "gemm"}, {2, 30, 10, 20, {{20, 1}, {28, 1}}}},
                     {{"decode", "a", "gemm"}, {1, INT64_MAX, 5, 5, {{5, 1}}}}};
  summary.collectives = {{"world", 1, "decode", "nccl", 50, 8},
                         {"world", 0, "decode", "nccl", 9, 3}};
  return summary;
}

TEST(SummaryFile, ComesBackWhole) {
  const RankSummary back = read_summary(summary_bytes(small_summary()));
  EXPECT_EQ(back.identity.run_id, "run-1");
  EXPECT_EQ(back.identity.rank, 7);
  EXPECT_EQ(back.identity.num_ranks, 16);
  EXPECT_EQ(back.identity.node, "n3");
  EXPECT_EQ(back.identity.exit_code, 143);
  EXPECT_EQ(back.identity.communicators_by, "by kernel");
  ASSERT_EQ(back.stages.size(), 1U);
  EXPECT_EQ(back.stages[0].buckets_ns[0], 60);
  EXPECT_EQ(back.stages[0].buckets_ns[10], 40);
  EXPECT_EQ(back.stages[0].peak_bytes, 5);
  ASSERT_EQ(back.kernels.size(), 2U);
  EXPECT_EQ(back.kernels[0].kernel, "a");
  EXPECT_EQ(back.kernels[0].total_ns, INT64_MAX);
  EXPECT_EQ(back.kernels[1].histogram, (std::map<int, std::int64_t>{{20, 1}, {28, 1}}));
  ASSERT_EQ(back.collectives.size(), 2U);
  EXPECT_EQ(back.collectives[0].sequence, 0);
  EXPECT_EQ(back.collectives[1].arrival_ns, 50);
  EXPECT_EQ(back.collectives[1].duration_ns, 8);
}

TEST(SummaryFile, OrderOfRowsDoesNotMatter) {
  RankSummary turned = small_summary();
  std::reverse(turned.kernels.begin(), turned.kernels.end());
  std::reverse(turned.collectives.begin(), turned.collectives.end());
  EXPECT_EQ(summary_bytes(turned), summary_bytes(small_summary()));
}

TEST(SummaryFile, DamageIsFound) {
  const std::string bytes = summary_bytes(small_summary());
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    std::string bad = bytes;
    bad[i] = static_cast<char>(bad[i] ^ 0x10);
    EXPECT_THROW(read_summary(bad), Error) << i;
    EXPECT_THROW(read_summary(bytes.substr(0, i)), Error) << i;
  }
}

// A hostile file can have a valid checksum.
TEST(SummaryFile, HostileBytesEndInAnError) {
  SteadyRandom random(1);
  std::size_t num_read = 0;
  const std::string good = summary_bytes(small_summary());
  for (int round = 0; round < 20'000; ++round) {
    std::string bad = good;
    for (std::size_t change = 0; change <= random.below(3); ++change) {
      bad[12 + random.below(bad.size() - 12)] = static_cast<char>(random.next());
    }
    with_checksum(bad);
    try {
      read_summary(bad);
      ++num_read;
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kInput);
    }
  }
  EXPECT_GT(num_read, 1000U);  // a changed letter of a name is not damage
  EXPECT_LT(num_read, 19'000U);
}

TEST(ColumnarFile, UnknownColumnsAreSkippedAndMissingOnesEmpty) {
  ColumnarWriter writer;
  const std::vector<std::int64_t> values = {1, 300, INT64_MAX, -5};
  writer.numbers("new.column", values);
  const std::string bytes = writer.finish("rank");
  const ColumnarFile file(bytes);
  EXPECT_THAT(file.numbers("new.column"), testing::ElementsAre(1, 300, INT64_MAX, 0));
  EXPECT_TRUE(file.numbers("old.column").empty());
  EXPECT_THROW(file.text_ids("new.column"), Error);
}

}  // namespace
}  // namespace gpuwhy
