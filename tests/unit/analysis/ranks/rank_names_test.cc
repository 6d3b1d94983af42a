// SPDX-License-Identifier: Apache-2.0
#include "analysis/ranks/rank_names.h"

#include <tuple>

#include "testing.h"

namespace gpuwhy {
namespace {

using Number = std::optional<std::int64_t>;

// rank, dp, pp, tp.
std::tuple<Number, Number, Number, Number> said(std::string_view name) {
  const RankName found = rank_in_name(name);
  return {found.rank, found.data, found.pipeline, found.tensor};
}

constexpr std::nullopt_t kNothing = std::nullopt;

TEST(RankNames, ReadsNamesOfEngines) {
  using Numbers = std::tuple<Number, Number, Number, Number>;
  EXPECT_EQ(said("dp0_pp1_tp3_dcp0_ep3_rank7.1766.pt.trace.json.gz"), Numbers(7, 0, 1, 3));
  EXPECT_EQ(said("1723456789.12-TP-3-DP-1.trace.json.gz"), Numbers(kNothing, 1, kNothing, 3));
  EXPECT_EQ(said("rank-12.json.gz"), Numbers(12, kNothing, kNothing, kNothing));
  EXPECT_EQ(said("trace_rank_003.sqlite"), Numbers(3, kNothing, kNothing, kNothing));
  EXPECT_EQ(said("rank=5"), Numbers(5, kNothing, kNothing, kNothing));
}

TEST(RankNames, IsSilentWhereNotSure) {
  const std::tuple<Number, Number, Number, Number> nothing;
  EXPECT_EQ(said("run.sqlite"), nothing);
  EXPECT_EQ(said("http2.json"), nothing);
  EXPECT_EQ(said("tp4x.json"), nothing);
  EXPECT_EQ(said("frank3.json"), nothing);
  EXPECT_EQ(said("rank--3.json"), nothing);
  EXPECT_EQ(said("rank0_rank1.json"), nothing);
  EXPECT_EQ(said("rank99999999999999999999.json"), nothing);
  EXPECT_EQ(said("tp"), nothing);
}

TEST(RankNames, TellsReplicasApart) {
  const auto one = [](std::string_view a, std::string_view b) {
    return are_of_one_replica(rank_in_name(a), rank_in_name(b));
  };
  const auto two = [](std::string_view a, std::string_view b) {
    return are_of_two_replicas(rank_in_name(a), rank_in_name(b));
  };
  EXPECT_TRUE(one("dp0_pp0_tp0", "dp0_pp1_tp0"));
  EXPECT_TRUE(one("TP-0", "TP-1"));
  EXPECT_FALSE(one("dp0_tp0", "dp1_tp1"));
  EXPECT_FALSE(one("dp0_tp0", "dp0_tp0"));
  EXPECT_FALSE(one("rank-0", "rank-1"));
  EXPECT_TRUE(two("dp0_tp0", "dp1_tp0"));
  EXPECT_FALSE(two("tp0", "dp1_tp0"));
}

}  // namespace
}  // namespace gpuwhy
