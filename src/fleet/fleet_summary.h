// SPDX-License-Identifier: Apache-2.0
//
// Ranks of one job added up. Adding is exact, associative and commutative: any order, any tree and
// any split of the same ranks gives the same bytes.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "fleet/rank_summary.h"

namespace llmprof {

inline constexpr std::string_view kFleetKind = "fleet";

// A stage of one rank.
struct RankStage : StageCell {
  std::int64_t compute_ns = 0;  // its kernels without those of communication
};

// What one rank spent in the collectives of one communicator.
struct CommunicatorShare {
  std::string communicator;
  std::int64_t total_ns = 0;
  // Which ones, as runs of sequence numbers: first, how many. Ranks mostly share one list.
  std::vector<std::pair<std::int64_t, std::int64_t>> sequences;
};

struct RankRow {
  RankIdentity identity;
  std::int64_t checksum = 0;  // of its file: the same rank twice is known by it
  std::vector<RankStage> stages;
  std::vector<CommunicatorShare> communicators;
};

// A kernel in a stage over all ranks.
struct FleetKernel {
  KernelCell sum;  // calls, total, min, max and histogram over all ranks
  std::int64_t num_ranks = 0;
  std::int64_t slowest_mean_ns = 0;  // of the rank with the longest mean; ties to the lowest
  std::int64_t slowest_rank = 0;
  // The kernel's mean over the mean of all compute kernels of the same rank and stage, in
  // millionths: what a slow GPU does not change and a slow kernel does. Steps of
  // analysis/duration_steps.h -> ranks. Empty for communication.
  std::map<int, std::int64_t> relative;
  std::int64_t most_relative = 0;
  std::int64_t most_relative_rank = 0;  // ties to the lowest
};

// One collective over the ranks that took part in it.
struct FleetCollective {
  std::string communicator;
  std::int64_t sequence = 0;
  std::string stage;         // of all that ranks gave, the first by name
  std::string kernel;        // the same
  std::string other_kernel;  // and the last: where it differs, ranks do not speak of the same one
  std::int64_t num_ranks = 0;
  std::int64_t shortest_ns = 0;  // whoever came last waited for nobody
  std::int64_t last_rank = 0;    // it; ties to the lowest
  std::int64_t longest_ns = 0;
  std::int64_t total_ns = 0;
};

struct OlderRank {
  std::int64_t rank = 0;
  std::int64_t attempt = 0;

  auto operator<=>(const OlderRank&) const = default;
};

struct FleetSummary {
  std::vector<RankRow> ranks;                // by rank; all of one run and one attempt
  std::vector<OlderRank> older;              // summaries of earlier attempts, left out; sorted
  std::vector<FleetKernel> kernels;          // by stage, kernel, family
  std::vector<FleetCollective> collectives;  // by communicator, sequence
};

std::string fleet_bytes(const FleetSummary& summary);
FleetSummary read_fleet(std::string_view bytes);  // throws kInput

}  // namespace llmprof
