// SPDX-License-Identifier: Apache-2.0
//
// Simulated jobs of tensor, pipeline and data parallel ranks: a merge must recover their groups, or
// claim nothing where nothing tells.
#include <algorithm>
#include <array>
#include <map>
#include <set>

#include <fmt/format.h>

#include "analysis/structure/collectives.h"
#include "compare/statistics.h"
#include "fleet/merge/fleet_report.h"
#include "fleet/merge/job_report.h"
#include "testing.h"

namespace gpuwhy {
namespace {

constexpr std::int64_t kTransferNs = 20'000;
constexpr std::int64_t kLateNs = 3'000'000;

struct Layout {
  std::array<std::int64_t, 3> sizes{};  // tensor, pipeline, data
  std::array<std::size_t, 3> order{};   // which of them changes fastest with the rank
  std::int64_t num_layers = 0;          // on each rank
  std::int64_t num_steps = 0;
  bool is_training = false;
  bool is_by_sequence = false;  // reduce-scatter and all-gather instead of all-reduce
  bool is_sharded = false;      // the parameters of data parallel ranks
  bool is_described = false;
  bool has_layers = false;  // recognized by the analysis
  std::int64_t late_rank = 0;

  std::int64_t num_ranks() const { return sizes[0] * sizes[1] * sizes[2]; }
  std::array<std::int64_t, 3> place(std::int64_t rank) const {
    std::array<std::int64_t, 3> found{};
    for (const std::size_t dimension : order) {
      found[dimension] = rank % sizes[dimension];
      rank /= sizes[dimension];
    }
    return found;
  }
  // The ranks that differ from this one in one dimension only.
  std::vector<std::int64_t> group(std::int64_t rank, std::size_t dimension) const {
    std::vector<std::int64_t> ranks;
    for (std::int64_t other = 0; other < num_ranks(); ++other) {
      auto mine = place(rank);
      auto its = place(other);
      mine[dimension] = its[dimension] = 0;
      if (mine == its) {
        ranks.push_back(other);
      }
    }
    return ranks;
  }
};

Layout random_layout(SteadyRandom& random) {
  constexpr std::array<std::int64_t, 4> kSizes = {1, 2, 4, 8};
  Layout layout;
  do {
    for (std::int64_t& size : layout.sizes) {
      size = kSizes[random.below(kSizes.size())];
    }
  } while (layout.num_ranks() < 2 || layout.num_ranks() > 64);
  layout.order = {0, 1, 2};
  for (std::size_t i = 3; i > 1; --i) {
    std::swap(layout.order[i - 1], layout.order[random.below(i)]);
  }
  layout.num_layers = 4 + static_cast<std::int64_t>(random.below(12));
  layout.num_steps = 3 + static_cast<std::int64_t>(random.below(4));
  layout.is_training = random.flip(0.6);
  layout.is_by_sequence = random.flip(0.3);
  layout.is_sharded = random.flip(0.4);
  layout.is_described = random.flip(0.3);
  layout.has_layers = random.flip(0.7);
  layout.late_rank =
      static_cast<std::int64_t>(random.below(static_cast<std::size_t>(layout.num_ranks())));
  return layout;
}

constexpr std::array<ParallelKind, 3> kKinds = {ParallelKind::kTensor, ParallelKind::kPipeline,
                                                ParallelKind::kData};
constexpr std::array<const char*, 3> kDescribed = {
    "TENSOR_MODEL_PARALLEL_GROUP", "PIPELINE_MODEL_PARALLEL_GROUP", "DATA_PARALLEL_GROUP"};

// How often an operation runs in one step of a rank, by where it runs.
struct Runs {
  const char* operation;
  std::int64_t per_forward_layer = 0;
  std::int64_t per_backward_layer = 0;
  std::int64_t outside = 0;
};

std::vector<Runs> runs_of(const Layout& layout, std::size_t dimension) {
  if (dimension == 0) {
    const std::int64_t backward = layout.is_training ? 2 : 0;
    return layout.is_by_sequence
               ? std::vector<Runs>{{"all_gather", 2, backward, 1}, {"reduce_scatter", 2, backward}}
               : std::vector<Runs>{{"all_reduce", 2, backward, 1}};
  }
  if (dimension == 1) {
    return {{"recv", 0, 0, 1}, {"send", 0, 0, 1}};
  }
  if (!layout.is_training) {
    return {};
  }
  return layout.is_sharded ? std::vector<Runs>{{"all_gather", 1, 1, 0}, {"reduce_scatter", 0, 1, 0}}
                           : std::vector<Runs>{{"all_reduce", 0, 1, 1}};
}

class PlantedGroups {
 public:
  explicit PlantedGroups(const Layout& layout) : layout_(layout) {
    for (std::int64_t rank = 0; rank < layout.num_ranks(); ++rank) {
      RankSummary& summary = ranks_.emplace_back();
      summary.identity.run_id = "planted";
      summary.identity.rank = rank;
      summary.identity.num_ranks = layout.num_ranks();
      for (std::size_t dimension = 0; dimension < 3; ++dimension) {
        if (layout.sizes[dimension] > 1) {
          add_group(summary, dimension);
        }
      }
      // The norm of the gradients, over all ranks: no kind of parallelism.
      if (layout.is_training) {
        std::vector<std::int64_t> all(static_cast<std::size_t>(layout.num_ranks()));
        for (std::size_t i = 0; i < all.size(); ++i) {
          all[i] = static_cast<std::int64_t>(i);
        }
        add(summary, "group 0, ranks " + ranks_text(all), "", all, {"all_reduce", 0, 0, 1});
      }
    }
  }

  const std::vector<RankSummary>& ranks() const { return ranks_; }
  const std::map<std::string, std::pair<ParallelKind, std::string>>& truth() const {
    return truth_;
  }

 private:
  void add_group(RankSummary& summary, std::size_t dimension) {
    const std::vector<std::int64_t> members = layout_.group(summary.identity.rank, dimension);
    const std::string ranks = ranks_text(members);
    const std::string communicator = fmt::format(
        "group {}, ranks {}", 1 + 100 * dimension + static_cast<std::size_t>(members[0]), ranks);
    for (const Runs& runs : runs_of(layout_, dimension)) {
      add(summary, communicator, layout_.is_described ? kDescribed[dimension] : "undefined",
          members, runs);
      const bool is_told = layout_.is_described || layout_.has_layers;
      truth_[communicator] = {is_told ? kKinds[dimension] : ParallelKind::kUnknown, ranks};
    }
  }

  void add(RankSummary& summary, const std::string& communicator, const std::string& description,
           const std::vector<std::int64_t>& members, const Runs& runs) {
    GroupRow cell;
    cell.communicator = communicator;
    cell.operation = runs.operation;
    cell.description = description;
    cell.ranks = ranks_text(members);
    cell.size = static_cast<std::int64_t>(members.size());
    const std::int64_t layers = layout_.num_layers * layout_.num_steps;
    cell.calls = layers * (runs.per_forward_layer + runs.per_backward_layer) +
                 layout_.num_steps * runs.outside;
    cell.total_ns = cell.calls * kTransferNs;
    if (layout_.has_layers) {
      cell.forward_layers = layers;
      cell.forward_layers_with = runs.per_forward_layer > 0 ? layers : 0;
      cell.forward_calls = layers * runs.per_forward_layer;
      cell.backward_layers = layout_.is_training ? layers : 0;
      cell.backward_calls = layers * runs.per_backward_layer;
    }
    summary.groups.push_back(cell);
    if (cell.operation == "send" || cell.operation == "recv") {
      return;
    }
    // The late rank comes last at every collective of its groups.
    const bool has_late =
        std::find(members.begin(), members.end(), layout_.late_rank) != members.end();
    const std::int64_t wait_ns =
        has_late && summary.identity.rank != layout_.late_rank ? kLateNs : 0;
    std::int64_t& sequence = sequences_[{summary.identity.rank, communicator}];
    for (std::int64_t call = 0; call < layout_.num_steps; ++call) {
      summary.collectives.push_back(
          {communicator, sequence++, "step", "nccl", 0, kTransferNs + wait_ns});
    }
  }

  const Layout& layout_;
  std::vector<RankSummary> ranks_;
  std::map<std::string, std::pair<ParallelKind, std::string>> truth_;
  std::map<std::pair<std::int64_t, std::string>, std::int64_t> sequences_;
};

TEST(PlantedGroups, AreRecoveredInAllLayoutsOrNothingIsClaimed) {
  SteadyRandom random(2026);
  std::map<ParallelKind, int> num_by_kind;
  for (int seed = 0; seed < 200; ++seed) {
    const Layout layout = random_layout(random);
    const PlantedGroups planted(layout);
    const FleetReport report = report_job(planted.ranks());
    const std::string job = fmt::format(
        "layout {}: {} x {} x {}, training {}, by sequence {}, sharded {}, described {}, "
        "layers {}",
        seed, layout.sizes[0], layout.sizes[1], layout.sizes[2], layout.is_training,
        layout.is_by_sequence, layout.is_sharded, layout.is_described, layout.has_layers);
    std::set<std::string> seen;
    for (const JobGroup& group : report.groups) {
      const std::string what = fmt::format("{}; {} is {}: {}", job, group.communicator,
                                           id_of(group.kind), group.evidence);
      seen.insert(group.communicator);
      ASSERT_FALSE(group.evidence.empty()) << what;
      ASSERT_EQ(group.num_present, group.size) << what;
      const auto truth = planted.truth().find(group.communicator);
      if (truth == planted.truth().end()) {
        ASSERT_EQ(group.kind, ParallelKind::kUnknown) << what;  // the norm's
        continue;
      }
      ASSERT_EQ(group.kind, truth->second.first) << what;
      ASSERT_EQ(group.ranks, truth->second.second) << what;
      ++num_by_kind[group.kind];
      // Who is late, and what it cost, in the groups it is in.
      if (group.kind == ParallelKind::kTensor) {
        const bool is_in = ranks_text(layout.group(layout.late_rank, 0)) == group.ranks;
        ASSERT_EQ(group.lost_ns > 0, is_in) << what;
        if (is_in) {
          ASSERT_EQ(group.late_rank, layout.late_rank) << what;
          ASSERT_EQ(group.num_last, group.collectives.num) << what;
          ASSERT_EQ(group.lost_ns, kLateNs * group.collectives.num) << what;
        }
      }
    }
    for (const auto& [communicator, truth] : planted.truth()) {
      ASSERT_TRUE(seen.contains(communicator)) << job << "; missing " << communicator;
    }
  }
  for (const ParallelKind kind : {ParallelKind::kUnknown, ParallelKind::kTensor,
                                  ParallelKind::kPipeline, ParallelKind::kData}) {
    EXPECT_GT(num_by_kind[kind], 50) << id_of(kind);
  }
}

// One rank of a group, with one operation in each forward layer.
std::vector<RankSummary> ranks_with(std::vector<GroupRow> cells, const char* part) {
  std::vector<RankSummary> ranks(2);
  for (std::int64_t rank = 0; rank < 2; ++rank) {
    RankSummary& summary = ranks[static_cast<std::size_t>(rank)];
    summary.identity.run_id = "two";
    summary.identity.rank = rank;
    for (GroupRow& cell : cells) {
      cell.communicator = "group 1, ranks 0-1";
      cell.ranks = "0-1";
      cell.size = 2;
      cell.calls = 20;
    }
    summary.groups = cells;
    summary.parts = {{"forward", "layer", part, 1, 10, 100}};
  }
  return ranks;
}

GroupRow in_layers(const char* operation, std::int64_t forward, std::int64_t backward) {
  GroupRow cell;
  cell.operation = operation;
  cell.forward_layers = 10;
  cell.forward_layers_with = forward > 0 ? 10 : 0;
  cell.forward_calls = forward;
  cell.backward_layers = backward > 0 ? 10 : 0;
  cell.backward_calls = backward;
  return cell;
}

TEST(JobGroups, WhatSeveralKindsDoHasNoKind) {
  const auto kind = [](const std::vector<GroupRow>& cells, const char* part) {
    return report_job(ranks_with(cells, part)).groups.at(0).kind;
  };
  // A sequence that is split by heads exchanges by all-to-all too.
  EXPECT_EQ(kind({in_layers("all_to_all", 20, 0)}, "experts"), ParallelKind::kExpert);
  EXPECT_EQ(kind({in_layers("all_to_all", 20, 0)}, "down"), ParallelKind::kUnknown);
  // A ring of attention sends inside layers.
  EXPECT_EQ(kind({in_layers("send", 20, 0), in_layers("recv", 20, 0)}, "down"),
            ParallelKind::kUnknown);
  // Parameters may be gathered in every layer without gradients: no training.
  EXPECT_EQ(kind({in_layers("all_gather", 10, 0)}, "down"), ParallelKind::kUnknown);
  // Without a word of the recording there is no group.
  EXPECT_TRUE(report_job(ranks_with({}, "down")).groups.empty());
}

TEST(JobGroups, EvidenceIsToldAndReadBackFromMergedFiles) {
  const FleetReport report = report_job(ranks_with({in_layers("all_reduce", 20, 0)}, "qkv"));
  EXPECT_EQ(report.groups.at(0).evidence, "all-reduce 2.0 times per forward layer");
  ASSERT_EQ(report.parts.size(), 1U);
  EXPECT_EQ(report.parts[0].launches, 20);
  EXPECT_EQ(report.parts[0].total_ns, 200);
  EXPECT_EQ(report.parts[0].num_ranks, 2);
  EXPECT_EQ(report.parts[0].slowest_rank, 0);
}

}  // namespace
}  // namespace gpuwhy
