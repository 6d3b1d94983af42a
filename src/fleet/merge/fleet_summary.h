// SPDX-License-Identifier: Apache-2.0
//
// The merged summaries of a job's ranks. Merging is exact, associative and commutative: any order,
// tree and split of the same ranks gives the same bytes.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "fleet/summary/rank_summary.h"

namespace gpuwhy {

inline constexpr std::string_view kFleetKind = "fleet";

// A stage of one rank.
struct RankStage : StageCell {
  std::int64_t compute_ns = 0;  // its kernels without those of communication
};

// Time of one rank in the collectives of one communicator.
struct CommunicatorShare {
  std::string communicator;
  std::int64_t total_ns = 0;
  // Which ones, as runs of sequence numbers: first and count. Most ranks share one list.
  std::vector<std::pair<std::int64_t, std::int64_t>> sequences;
};

// What is kept of each rank.
struct RankRow {
  RankIdentity identity;
  std::int64_t checksum = 0;  // of its file: identifies duplicates of a rank
  std::vector<RankStage> stages;
  std::vector<CommunicatorShare> communicators;
};

// A kernel in a stage, over all ranks.
struct FleetKernel {
  KernelCell sum;  // calls, total, min, max and histogram over all ranks
  std::int64_t num_ranks = 0;
  std::int64_t slowest_mean_ns = 0;  // of the rank with the longest mean; ties to the lowest
  std::int64_t slowest_rank = 0;
  // The kernel's mean relative to the mean of all compute kernels of the same rank and stage, in
  // millionths: a slow GPU does not change it, a slow kernel does. Bins of
  // analysis/duration_histogram.h -> ranks. Empty for communication.
  std::map<int, std::int64_t> relative;
  std::int64_t most_relative = 0;
  std::int64_t most_relative_rank = 0;  // ties to the lowest
};

// One collective, over the ranks that took part in it.
struct FleetCollective {
  std::string communicator;
  std::int64_t sequence = 0;
  std::string stage;         // the first by name, if ranks differ
  std::string kernel;        // the same
  std::string other_kernel;  // the last by name: if different, ranks disagree
  std::int64_t num_ranks = 0;
  std::int64_t shortest_ns = 0;  // of the rank that came last and did not wait
  std::int64_t last_rank = 0;    // that rank; ties go to the lowest
  std::int64_t longest_ns = 0;
  std::int64_t total_ns = 0;
};

// One operation in a group of ranks, over the ranks that took part in it.
struct FleetGroup : GroupCell {
  std::int64_t num_ranks = 0;
};

// A part of the model, over all ranks that have it.
struct FleetPart : PartCell {
  std::int64_t num_ranks = 0;
  std::int64_t slowest_ns = 0;  // of the rank with the most time in it; ties to the lowest
  std::int64_t slowest_rank = 0;
};

// A rank of an attempt that no longer counts.
struct OlderRank {
  std::int64_t rank = 0;
  std::int64_t attempt = 0;

  auto operator<=>(const OlderRank&) const = default;
};

// A merged job.
struct FleetSummary {
  std::vector<RankRow> ranks;                // by rank; all of one run and one attempt
  std::vector<OlderRank> older;              // summaries of earlier attempts, left out; sorted
  std::vector<FleetKernel> kernels;          // by stage, kernel, family
  std::vector<FleetCollective> collectives;  // by communicator, sequence
  std::vector<FleetGroup> groups;            // by communicator, operation
  std::vector<FleetPart> parts;              // by pass, block, part
};

std::string fleet_bytes(const FleetSummary& summary);
FleetSummary read_fleet(std::string_view bytes);  // throws kInput

}  // namespace gpuwhy
