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

#include "results/fleet.h"

namespace gpuwhy {

inline constexpr std::string_view kFleetKind = "fleet";

// A stage of one rank.
struct RankStage : StageSums {
  std::int64_t compute_ns = 0;  // its kernels without those of communication
};

template <typename F>
void describe(const RankStage*, F&& f) {
  f("compute_ns", &RankStage::compute_ns, kInSummary);
}

// Collectives that follow each other.
struct SequenceRun {
  std::int64_t first = 0;
  std::int64_t count = 0;
};

template <typename F>
void describe(const SequenceRun*, F&& f) {
  fields(f, kInSummary, "first", &SequenceRun::first, "count", &SequenceRun::count);
}

// Time of one rank in the collectives of one communicator.
struct CommunicatorShare {
  std::string communicator;
  std::int64_t total_ns = 0;
  std::vector<SequenceRun> sequences;  // which ones; most ranks share one list
};

template <typename F>
void describe(const CommunicatorShare*, F&& f) {
  fields(f, kInSummary, "communicator", &CommunicatorShare::communicator, "total_ns",
         &CommunicatorShare::total_ns);
}

// What is kept of each rank.
struct RankRow {
  RankIdentity identity;
  std::int64_t checksum = 0;  // of its file: identifies duplicates of a rank
  std::vector<RankStage> stages;
  std::vector<CommunicatorShare> communicators;
};

template <typename F>
void describe(const RankRow*, F&& f) {
  f("checksum", &RankRow::checksum, kInSummary);
}

// What tells the ranks of a kernel apart.
struct KernelSpread {
  std::int64_t num_ranks = 0;
  std::int64_t slowest_mean_ns = 0;  // of the rank with the longest mean; ties to the lowest
  std::int64_t slowest_rank = 0;
  std::int64_t most_relative = 0;       // of FleetKernel::relative
  std::int64_t most_relative_rank = 0;  // ties to the lowest
};

// A kernel in a stage, over all ranks.
struct FleetKernel : KernelSums, KernelSpread {
  // The kernel's mean relative to the mean of all compute kernels of the same rank and stage, in
  // millionths: a slow GPU does not change it, a slow kernel does. Bins of
  // results/duration_histogram.h -> ranks. Empty for communication.
  std::map<int, std::int64_t> relative = {};
};

template <typename F>
void describe(const FleetKernel*, F&& f) {
  using T = FleetKernel;
  fields(f, kInSummary, "num_ranks", &T::num_ranks, "slowest_mean_ns", &T::slowest_mean_ns,
         "slowest_rank", &T::slowest_rank, "most_relative", &T::most_relative, "most_relative_rank",
         &T::most_relative_rank);
  f("relative", &T::relative, in(kFormRanks, number("1", "ranks", "", "", "")));
}

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

template <typename F>
void describe(const FleetCollective*, F&& f) {
  using T = FleetCollective;
  fields(f, kInSummary, "communicator", &T::communicator, "stage", &T::stage, "kernel", &T::kernel,
         "other_kernel", &T::other_kernel, "sequence", &T::sequence, "num_ranks", &T::num_ranks,
         "shortest_ns", &T::shortest_ns, "last_rank", &T::last_rank, "longest_ns", &T::longest_ns,
         "total_ns", &T::total_ns);
}

// One operation in a group of ranks, over the ranks that took part in it.
struct FleetGroup : GroupRow {
  std::int64_t num_ranks = 0;
};

template <typename F>
void describe(const FleetGroup*, F&& f) {
  f("num_ranks", &FleetGroup::num_ranks, kInSummary);
}

template <typename F>
void describe(const OlderRank*, F&& f) {
  fields(f, kInSummary, "rank", &OlderRank::rank, "attempt", &OlderRank::attempt);
}

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
