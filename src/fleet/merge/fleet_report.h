// SPDX-License-Identifier: Apache-2.0
//
// Results of a merge: stragglers, waiting in collectives, and outlier nodes, GPUs and kernels.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/json_fwd.h"
#include "fleet/merge/fleet_summary.h"
#include "fleet/summary/rank_summary.h"

namespace llmprof {

// Time in collectives, in three parts that sum to it. The shortest duration over the ranks of a
// collective is its transfer; the rest of a rank's time is waiting for the last one to arrive. If
// only one rank recorded a collective, there is nothing to compare with.
struct CollectiveTime {
  std::int64_t total_ns = 0;
  std::int64_t transfer_ns = 0;
  std::int64_t waiting_ns = 0;
  std::int64_t alone_ns = 0;
};

// Why a rank is slow: its kernels compared with the mean of all other ranks.
struct StragglerCause {
  std::string stage;   // where it loses most
  std::string kernel;  // and there by which kernel
  std::int64_t kernel_excess_ns = 0;
  std::int64_t excess_ns = 0;     // over all its kernels
  double kernel_ratio = 0;        // its mean over that of the others
  double compute_ratio = 0;       // all compute of the rank over the others' means
  double own_share_fraction = 0;  // kernel_excess_ns of excess_ns
};

// Everything a report says about one rank.
struct RankVerdict {
  std::int64_t rank = 0;
  std::string node;
  std::string gpu;
  std::string recorded_by;
  std::int64_t exit_code = 0;
  std::optional<std::int64_t> own_ns;        // FleetReport::quantity
  std::optional<double> deviation_fraction;  // from the median over ranks
  CollectiveTime collectives;
  std::int64_t num_met = 0;    // collectives with others
  std::int64_t num_last = 0;   // of these: the last to arrive
  std::int64_t caused_ns = 0;  // what others waited there
  // caused_ns after tracing lateness back to its origin: a rank that is late at one collective
  // because it waited in another passes on what it caused. The sum over ranks is the same.
  std::int64_t blamed_ns = 0;
  bool is_straggler = false;
  std::optional<StragglerCause> reason;
  std::string reason_absent;
};

// A stage of a rank relative to the median of that stage over ranks: the heat map.
struct StageDeviation {
  std::string stage;
  std::vector<std::optional<double>> fractions;  // by FleetReport::ranks
};

// A node or a GPU model.
struct GroupSpread {
  std::string name;
  std::int64_t num_ranks = 0;
  double deviation_fraction = 0;  // the median over its ranks of theirs
  std::int64_t worst_rank = 0;
  bool is_outlier = false;
};

// A kernel on which ranks disagree: on some, its mean relative to the mean of all compute kernels
// of the same rank and stage is at least two bins (about 19 %) above the median rank's. A slow GPU
// slows all its kernels and does not show here, nor does a kernel that is slow everywhere.
struct KernelOutlier {
  std::string stage;
  std::string kernel;
  std::string family;
  std::int64_t num_ranks = 0;
  std::int64_t num_slow = 0;
  std::int64_t mean_ns = 0;    // over all ranks
  double slow_ratio = 0;       // of the worst rank to the median one
  std::int64_t excess_ns = 0;  // estimated loss of the slow ranks
  std::int64_t worst_rank = 0;
};

// The result of analyzing a merged summary.
struct FleetReport {
  std::string run_id;
  std::int64_t attempt = 0;
  std::int64_t num_expected = 0;                               // 0: unknown
  std::vector<std::pair<std::int64_t, std::int64_t>> missing;  // first and last of each gap
  std::int64_t num_missing = 0;
  std::vector<OlderRank> older;
  std::string quantity;                 // what own_ns is: "compute kernels" or "stages on the host"
  std::vector<RankVerdict> ranks;       // by rank
  std::vector<std::size_t> stragglers;  // indexes of all ranks, the worst first
  CollectiveTime collectives;
  std::int64_t num_collectives = 0;
  std::int64_t num_alone = 0;
  std::int64_t num_mismatched = 0;  // ranks give it different kernels
  std::vector<std::string> communicators_by;
  std::vector<StageDeviation> stages;
  std::vector<GroupSpread> nodes;  // the slowest first
  std::vector<GroupSpread> gpus;
  std::vector<KernelOutlier> kernels;  // the costliest first
};

FleetReport report_fleet(const FleetSummary& fleet);

// For one rank, from its own file. nullopt if it has no kernels or no other rank has them.
std::optional<StragglerCause> straggler_cause(const FleetSummary& fleet, const RankSummary& own);

// The numbers of a merge report as JSON. `unfinished`: ranks that started, according to their
// folders, and left no summary; sorted.
SharedJson fleet_json(const FleetReport& report, const std::vector<OlderRank>& unfinished);

}  // namespace llmprof
