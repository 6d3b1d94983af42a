// SPDX-License-Identifier: Apache-2.0
//
// Results of a merge: stragglers, waiting in collectives, and outlier nodes, GPUs and kernels.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/json_fwd.h"
#include "fleet/merge/fleet_summary.h"
#include "fleet/summary/rank_summary.h"

namespace gpuwhy {

// Time in collectives, in three parts that sum to it. The shortest duration over the ranks of a
// collective is its transfer; the rest of a rank's time is waiting for the last one to arrive. If
// only one rank recorded a collective, there is nothing to compare with.
struct CollectiveTime {
  std::int64_t total_ns = 0;
  std::int64_t transfer_ns = 0;
  std::int64_t waiting_ns = 0;
  std::int64_t alone_ns = 0;
};

// What makes a rank late, in the terms of the ledger.
enum class LateCause {
  kUnknown,
  kKernels,  // its kernels; which of them is not known
  kKernel,   // one of its kernels
  kClocks,   // all its kernels alike, as with low clocks, a power limit or heat
  kHost,     // its CPU launches late or waits
  kCopies,
  kNetwork,  // it leaves collectives later than the other members
};
std::string_view id_of(LateCause cause);  // "clocks", for JSON

// Whether a stage lies within another one, so that its time must not be added to that one's.
bool is_nested_stage(std::string_view stage);

// How much longer than the median rank a rank takes, by part of the ledger. Below 0: shorter.
struct LateParts {
  std::int64_t compute_ns = 0;
  std::int64_t host_ns = 0;  // waiting for CPU launch, CPU in a sync call, idle for unknown reasons
  std::int64_t copy_ns = 0;
  std::int64_t network_ns = 0;
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
  bool is_uniform = false;        // most of its kernels are slower, by time and by number
};

// Everything a report says about one rank.
struct RankVerdict {
  std::int64_t rank = 0;
  std::string node;
  std::string gpu;
  std::string recorded_by;
  std::int64_t exit_code = 0;
  std::string failure;                       // why it has no recording; empty: nothing failed
  std::optional<std::int64_t> own_ns;        // FleetReport::quantity
  std::optional<double> deviation_fraction;  // from the median over ranks
  CollectiveTime collectives;
  std::int64_t num_met = 0;    // collectives with others
  std::int64_t num_last = 0;   // of these: the last to arrive
  std::int64_t caused_ns = 0;  // what others waited there
  // caused_ns after tracing lateness back to its origin: a rank that is late at one collective
  // because it waited in another passes on what it caused. The sum over ranks is the same.
  std::int64_t blamed_ns = 0;
  // What the job lost to it: what the others waited for it, per rank.
  std::int64_t lost_ns = 0;
  // Of its waiting, in groups of at least three ranks: what it took to leave them after the typical
  // member.
  std::int64_t network_ns = 0;
  bool is_straggler = false;
  LateCause cause = LateCause::kUnknown;
  std::optional<LateParts> parts;  // of a straggler with a ledger
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

// How a group of ranks shares the model.
enum class ParallelKind { kUnknown, kTensor, kPipeline, kData, kExpert, kContext };
std::string_view id_of(ParallelKind kind);  // "tensor", for JSON; "unknown"

// A group of ranks that communicate with each other, as their recordings name it.
struct JobGroup {
  std::string communicator;
  ParallelKind kind = ParallelKind::kUnknown;
  std::string evidence;          // for the kind; without one, why it is not known
  std::string ranks;             // "0-7", "0-56 by 8"
  std::int64_t size = 0;         // 0: not recorded
  std::int64_t num_present = 0;  // ranks that communicate in it
  std::int64_t num_calls = 0;    // of all ranks, with sends and receives
  CollectiveTime collectives;    // of those that can be matched
  std::int64_t num_collectives = 0;
  // The rank that was last most often, and what the group lost to it: what the others waited for
  // it, per rank. nullopt: nothing was matched.
  std::optional<std::int64_t> late_rank;
  std::int64_t num_last = 0;
  std::int64_t lost_ns = 0;
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
  std::int64_t num_measured = 0;        // ranks that have it
  std::vector<RankVerdict> ranks;       // by rank
  std::vector<std::size_t> stragglers;  // indexes of all ranks, the worst first
  CollectiveTime collectives;
  // Whether it is one rank that others wait for, or one after the other.
  enum class Lateness { kLittle, kPinned, kRotating };
  Lateness lateness = Lateness::kLittle;
  std::int64_t num_collectives = 0;
  std::int64_t num_alone = 0;
  std::int64_t num_mismatched = 0;  // ranks give it different kernels
  std::vector<std::string> communicators_by;
  std::vector<StageDeviation> stages;
  std::vector<GroupSpread> nodes;  // the slowest first
  std::vector<GroupSpread> gpus;
  std::vector<KernelOutlier> kernels;  // the costliest first
  std::vector<JobGroup> groups;        // by kind; those that lose most first
  std::vector<FleetPart> parts;        // by time
};

FleetReport report_fleet(const FleetSummary& fleet);

// Adds what a rank's own summary tells: which kernel, and whether it is one or all of them.
void explain_straggler(const FleetSummary& fleet, const RankSummary& own, RankVerdict& verdict);

// For one rank, from its own file. nullopt if it has no kernels or no other rank has them.
std::optional<StragglerCause> straggler_cause(const FleetSummary& fleet, const RankSummary& own);

// What a merge could not use.
struct LeftOut {
  std::vector<OlderRank> unfinished;    // started, according to their folders, without a summary
  std::vector<std::string> unreadable;  // files that are not summaries, each with the reason
};

// The numbers of a merge report as JSON.
SharedJson fleet_json(const FleetReport& report, const LeftOut& left_out);

}  // namespace gpuwhy
