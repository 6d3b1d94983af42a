// SPDX-License-Identifier: Apache-2.0
//
// What merged ranks say: who is late, who waits for whom, which node, GPU or kernel stands out.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/json_fwd.h"
#include "fleet/fleet_summary.h"
#include "fleet/rank_summary.h"

namespace llmprof {

// Time in collectives in three parts that sum to it. The shortest duration over the ranks of a
// collective is its transfer; what a rank spent beyond that it waited for the last one to arrive.
// Where a single rank saw it there is nothing to compare with.
struct CollectiveTime {
  std::int64_t total_ns = 0;
  std::int64_t transfer_ns = 0;
  std::int64_t waiting_ns = 0;
  std::int64_t alone_ns = 0;
};

// Why a rank is late: its kernels against the mean of all other ranks.
struct LateReason {
  std::string stage;   // where it loses most
  std::string kernel;  // and there by which kernel
  std::int64_t kernel_excess_ns = 0;
  std::int64_t excess_ns = 0;     // over all its kernels
  double kernel_ratio = 0;        // its mean over that of the others
  double compute_ratio = 0;       // all compute of the rank over what the others' means would give
  double own_share_fraction = 0;  // kernel_excess_ns of excess_ns
};

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
  // The same after lateness was traced to where it began: a rank that is late at one collective
  // because it waited in another passes on what it caused. Sums to what caused_ns sums to.
  std::int64_t blamed_ns = 0;
  bool is_straggler = false;
  std::optional<LateReason> reason;
  std::string reason_absent;
};

// A stage of a rank against the median of that stage over ranks: the heat map.
struct StageDeviation {
  std::string stage;
  std::vector<std::optional<double>> fractions;  // by FleetReport::ranks
};

// A node or a kind of GPU.
struct GroupSpread {
  std::string name;
  std::int64_t num_ranks = 0;
  double deviation_fraction = 0;  // the median over its ranks of theirs
  std::int64_t worst_rank = 0;
  bool is_outlier = false;
};

// A kernel on which ranks do not agree: on some its mean, over the mean of all compute kernels of
// the same rank and stage, lies at least two steps (19 % on the average) above the median rank's. A
// slow GPU slows all its kernels and does not show here; a kernel slow everywhere is none.
struct KernelOutlier {
  std::string stage;
  std::string kernel;
  std::string family;
  std::int64_t num_ranks = 0;
  std::int64_t num_slow = 0;
  std::int64_t mean_ns = 0;    // over all ranks
  double slow_ratio = 0;       // of the worst rank to the median one
  std::int64_t excess_ns = 0;  // about: what the slow ranks lost
  std::int64_t worst_rank = 0;
};

struct FleetReport {
  std::string run_id;
  std::int64_t attempt = 0;
  std::int64_t num_expected = 0;                               // 0: no launcher said
  std::vector<std::pair<std::int64_t, std::int64_t>> missing;  // first and last of each gap
  std::int64_t num_missing = 0;
  std::vector<OlderRank> older;
  std::string quantity;                 // what own_ns is: "compute kernels" or "stages on the host"
  std::vector<RankVerdict> ranks;       // by rank
  std::vector<std::size_t> stragglers;  // into ranks, the worst first; also those that are none
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

// Of a rank's own file. Nothing where it has no kernels or no other rank has them.
std::optional<LateReason> late_reason(const FleetSummary& fleet, const RankSummary& own);

// Everything a report of a merge shows, as numbers. `unfinished`: ranks that began, as their
// folders say, and left no summary; sorted.
Json fleet_json(const FleetReport& report, const std::vector<OlderRank>& unfinished);

}  // namespace llmprof
