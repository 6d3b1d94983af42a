// SPDX-License-Identifier: Apache-2.0
//
// Results of a merge: stragglers, waiting in collectives, and outlier nodes, GPUs and kernels.
//
// The descriptions are the JSON that scripts read ("gpuwhy.fleet").
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "results/rank_summary.h"

namespace gpuwhy {

inline constexpr Field kMaybe = maybe("");  // null where it is empty, 0 or unknown

// Time in collectives, in three parts that sum to it. The shortest duration over the ranks of a
// collective is its transfer; the rest of a rank's time is waiting for the last one to arrive. If
// only one rank recorded a collective, there is nothing to compare with.
struct CollectiveTime {
  std::int64_t total_ns = 0;
  std::int64_t transfer_ns = 0;
  std::int64_t waiting_ns = 0;
  std::int64_t alone_ns = 0;
};

template <typename F>
void describe(const CollectiveTime*, F&& f) {
  using T = CollectiveTime;
  fields(f, kInherited, "total_ns", &T::total_ns, "transfer_ns", &T::transfer_ns, "waiting_ns",
         &T::waiting_ns, "alone_ns", &T::alone_ns);
}

// The same of a group of ranks.
struct GroupCollectives : CollectiveTime {
  std::int64_t num = 0;
};

template <typename F>
void describe(const GroupCollectives* row, F&& f) {
  describe(static_cast<const CollectiveTime*>(row), f);
  f("num", &GroupCollectives::num, kInherited);
}

// The same of the job.
struct JobCollectives : GroupCollectives {
  std::int64_t num_alone = 0;
  std::int64_t num_mismatched = 0;  // ranks give it different kernels
  std::vector<std::string> communicators_by;
};

template <typename F>
void describe(const JobCollectives* row, F&& f) {
  using T = JobCollectives;
  describe(static_cast<const GroupCollectives*>(row), f);
  fields(f, kInherited, "num_alone", &T::num_alone, "num_mismatched", &T::num_mismatched,
         "communicators_by", &T::communicators_by);
}

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
inline std::string_view id_of(LateCause cause) {
  constexpr std::array<std::string_view, 7> kIds = {"unknown", "kernels", "kernel", "clocks",
                                                    "host",    "copies",  "network"};
  return kIds[static_cast<std::size_t>(cause)];
}

// How much longer than the median rank a rank takes, by part of the ledger. Below 0: shorter.
struct LateParts {
  std::int64_t compute_ns = 0;
  std::int64_t host_ns = 0;  // waiting for CPU launch, CPU in a sync call, idle for unknown reasons
  std::int64_t copy_ns = 0;
  std::int64_t network_ns = 0;
};

template <typename F>
void describe(const LateParts*, F&& f) {
  using T = LateParts;
  fields(f, kInherited, "compute_ns", &T::compute_ns, "host_ns", &T::host_ns, "copy_ns",
         &T::copy_ns, "network_ns", &T::network_ns);
}

// Why a rank is slow: its kernels compared with the mean of all other ranks.
struct StragglerCause {
  std::string absent = {};  // why the rest is not known; empty: it is
  std::string stage;        // where it loses most
  std::string kernel;       // and there by which kernel
  std::int64_t kernel_excess_ns = 0;
  std::int64_t excess_ns = 0;     // over all its kernels
  double kernel_ratio = 0;        // its mean over that of the others
  double compute_ratio = 0;       // all compute of the rank over the others' means
  double own_share_fraction = 0;  // kernel_excess_ns of excess_ns
  bool is_uniform = false;        // most of its kernels are slower, by time and by number
};

template <typename F>
void describe(const StragglerCause* row, F&& f) {
  using T = StragglerCause;
  if (row != nullptr && !row->absent.empty()) {
    f("absent", &T::absent, kInherited);
    return;
  }
  fields(f, kInherited, "stage", &T::stage, "kernel", &T::kernel, "kernel_excess_ns",
         &T::kernel_excess_ns, "kernel_ratio", &T::kernel_ratio, "kernel_share_fraction",
         &T::own_share_fraction, "excess_ns", &T::excess_ns, "compute_ratio", &T::compute_ratio);
}

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
  // What the job lost to it: what the others waited for it, per rank.
  std::int64_t lost_ns = 0;
  // Of its waiting, in groups of at least three ranks: what it took to leave them after the typical
  // member.
  std::int64_t network_ns = 0;
  bool is_straggler = false;
  LateCause cause = LateCause::kUnknown;
  std::optional<LateParts> parts;  // of a straggler with a ledger
  StragglerCause reason;
};

template <typename F>
void describe(const RankVerdict* row, F&& f) {
  using T = RankVerdict;
  f("rank", &T::rank, kInherited);
  fields(f, kMaybe, "node", &T::node, "gpu", &T::gpu, "recorded_by", &T::recorded_by);
  fields(f, kInherited, "exit_code", &T::exit_code, "own_ns", &T::own_ns, "deviation_fraction",
         &T::deviation_fraction, "collectives", &T::collectives, "met", &T::num_met, "last",
         &T::num_last, "caused_ns", &T::caused_ns, "blamed_ns", &T::blamed_ns, "lost_ns",
         &T::lost_ns, "network_ns", &T::network_ns, "straggler", &T::is_straggler);
  // Only a straggler has the keys that follow.
  if (row == nullptr || row->is_straggler) {
    f("cause", &T::cause, kInherited);
    if (row == nullptr || row->parts) {
      f("excess", &T::parts, kInherited);
    }
    f("reason", &T::reason, kInherited);
  }
}

// A stage of a rank relative to the median of that stage over ranks.
struct StageDeviation {
  std::string stage;
  std::vector<std::optional<double>> fractions;  // by FleetReport::ranks
};

template <typename F>
void describe(const StageDeviation*, F&& f) {
  fields(f, kInherited, "stage", &StageDeviation::stage, "deviation_fractions",
         &StageDeviation::fractions);
}

// The heat map, in the order of ranks.
struct FleetHeat {
  std::vector<std::int64_t> ranks;
  std::vector<std::string> nodes;
  std::vector<StageDeviation> stages;
};

template <typename F>
void describe(const FleetHeat*, F&& f) {
  using T = FleetHeat;
  fields(f, kInherited, "ranks", &T::ranks, "nodes", &T::nodes, "stages", &T::stages);
}

// A node or a GPU model.
struct GroupSpread {
  std::string name;  // "n/a": of ranks that do not say it
  bool is_named = false;
  std::int64_t num_ranks = 0;
  double deviation_fraction = 0;  // the median over its ranks of theirs
  std::int64_t worst_rank = 0;
  bool is_outlier = false;
};

template <typename F>
void describe(const GroupSpread*, F&& f) {
  using T = GroupSpread;
  fields(f, kInherited, "name", &T::name, "ranks", &T::num_ranks, "deviation_fraction",
         &T::deviation_fraction, "worst_rank", &T::worst_rank, "outlier", &T::is_outlier);
}

// How a group of ranks shares the model.
enum class ParallelKind { kUnknown, kTensor, kPipeline, kData, kExpert, kContext };
inline std::string_view id_of(ParallelKind kind) {
  constexpr std::array<std::string_view, 6> kIds = {"unknown", "tensor", "pipeline",
                                                    "data",    "expert", "context"};
  return kIds[static_cast<std::size_t>(kind)];
}

// A group of ranks that communicate with each other, as their recordings name it.
struct JobGroup {
  std::string communicator;
  ParallelKind kind = ParallelKind::kUnknown;
  std::string evidence;          // for the kind; without one, why it is not known
  std::string ranks;             // "0-7", "0-56 by 8"
  std::int64_t size = 0;         // 0: not recorded
  std::int64_t num_present = 0;  // ranks that communicate in it
  std::int64_t num_calls = 0;    // of all ranks, with sends and receives
  GroupCollectives collectives;  // those that can be matched
  // The rank that was last most often, and what the group lost to it: what the others waited for
  // it, per rank. nullopt: nothing was matched.
  std::optional<std::int64_t> late_rank;
  std::int64_t num_last = 0;
  std::int64_t lost_ns = 0;
};

template <typename F>
void describe(const JobGroup*, F&& f) {
  using T = JobGroup;
  f("kind", &T::kind, kMaybe);
  fields(f, kInherited, "evidence", &T::evidence, "communicator", &T::communicator);
  fields(f, kMaybe, "ranks", &T::ranks, "size", &T::size);
  fields(f, kInherited, "present", &T::num_present, "calls", &T::num_calls, "collectives",
         &T::collectives, "late_rank", &T::late_rank, "last", &T::num_last, "lost_ns", &T::lost_ns);
}

// A part of the model, over all ranks that have it.
struct FleetPart : PartRow {
  std::int64_t num_ranks = 0;
  std::int64_t slowest_ns = 0;  // of the rank with the most time in it; ties to the lowest
  std::int64_t slowest_rank = 0;
};

template <typename F>
void describe(const FleetPart*, F&& f) {
  using T = FleetPart;
  fields(f, kInherited, "pass", &T::pass, "block", &T::block, "part", &T::part);
  f("ranks", &T::num_ranks, in(kFormRanks, kInherited, "num_ranks"));
  fields(f, kInherited, "passes", &T::passes, "launches", &T::launches, "total_ns", &T::total_ns);
  fields(f, kInSummary, "slowest_ns", &T::slowest_ns, "slowest_rank", &T::slowest_rank);
}

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

template <typename F>
void describe(const KernelOutlier*, F&& f) {
  using T = KernelOutlier;
  fields(f, kInherited, "kernel", &T::kernel, "stage", &T::stage, "family", &T::family, "ranks",
         &T::num_ranks, "slow_ranks", &T::num_slow, "mean_ns", &T::mean_ns, "slow_ratio",
         &T::slow_ratio, "excess_ns", &T::excess_ns, "worst_rank", &T::worst_rank);
}

// A rank of an attempt that does not count.
struct OlderRank {
  std::int64_t rank = 0;
  std::int64_t attempt = 0;

  auto operator<=>(const OlderRank&) const = default;
};

// Ranks of one attempt, as ranges: "0-7".
struct AttemptRanks {
  std::int64_t attempt = 0;
  std::vector<std::string> ranks;
};
std::vector<AttemptRanks> by_attempt(const std::vector<OlderRank>& sorted);
std::string range_text(std::int64_t first, std::int64_t last);  // "7", "0-7"

template <typename F>
void describe(const AttemptRanks*, F&& f) {
  fields(f, kInherited, "attempt", &AttemptRanks::attempt, "ranks", &AttemptRanks::ranks);
}

// A rank whose program failed.
struct FailedRank {
  std::int64_t rank = 0;
  std::int64_t exit_code = 0;
};

template <typename F>
void describe(const FailedRank*, F&& f) {
  fields(f, kInherited, "rank", &FailedRank::rank, "exit_code", &FailedRank::exit_code);
}

// A rank without a recording, though one was asked for.
struct UnrecordedRank {
  std::int64_t rank = 0;
  std::string reason;
};

template <typename F>
void describe(const UnrecordedRank*, F&& f) {
  fields(f, kInherited, "rank", &UnrecordedRank::rank, "reason", &UnrecordedRank::reason);
}

// Which ranks are there, missing, unfinished or failed.
struct RankPresence {
  std::int64_t num_present = 0;
  std::int64_t num_expected = 0;  // 0: unknown
  std::int64_t num_missing = 0;
  std::vector<std::string> missing;      // as ranges
  std::vector<AttemptRanks> unfinished;  // started, by their folders, without a summary
  std::vector<std::string> unreadable;   // files that are not summaries, each with the reason
  std::vector<FailedRank> failed;
  std::vector<UnrecordedRank> not_recorded;
  std::vector<AttemptRanks> earlier_attempts;
  std::map<std::string, std::int64_t> recorded_by;  // ranks by recorder
};

template <typename F>
void describe(const RankPresence*, F&& f) {
  using T = RankPresence;
  f("present", &T::num_present, kInherited);
  f("expected", &T::num_expected, kMaybe);
  fields(f, kInherited, "num_missing", &T::num_missing, "missing", &T::missing, "unfinished",
         &T::unfinished, "unreadable", &T::unreadable, "failed", &T::failed, "not_recorded",
         &T::not_recorded, "earlier_attempts", &T::earlier_attempts, "recorded_by",
         &T::recorded_by);
}

// The result of analyzing a merged summary.
struct FleetReport {
  std::string run_id;
  std::int64_t attempt = 0;
  RankPresence presence;
  std::string quantity;                 // what own_ns is: "compute kernels" or "stages on the host"
  std::int64_t num_measured = 0;        // ranks that have it
  std::vector<RankVerdict> ranks;       // by rank
  std::vector<std::size_t> stragglers;  // indexes of all ranks, the worst first
  JobCollectives collectives;
  // Whether it is one rank that others wait for, or one after the other.
  enum class Lateness { kLittle, kPinned, kRotating };
  Lateness lateness = Lateness::kLittle;
  std::vector<GroupSpread> nodes;  // the slowest first
  std::vector<GroupSpread> gpus;
  std::vector<KernelOutlier> kernels;  // the costliest first
  std::vector<JobGroup> groups;        // by kind; those that lose most first
  std::vector<FleetPart> parts;        // by time
  FleetHeat heat;

  // The ranks, the worst first.
  std::vector<RankVerdict> rank_table() const;
};
std::string_view id_of(FleetReport::Lateness lateness);

template <typename F>
void describe(const FleetReport*, F&& f) {
  using T = FleetReport;
  f("run_id", &T::run_id, kMaybe);
  fields(f, kInherited, "attempt", &T::attempt, "ranks", &T::presence, "quantity", &T::quantity,
         "num_measured", &T::num_measured, "lateness", &T::lateness, "collectives", &T::collectives,
         "rank_table", &T::rank_table, "nodes", &T::nodes, "gpus", &T::gpus, "kernels", &T::kernels,
         "groups", &T::groups, "parts", &T::parts, "heat", &T::heat);
}

// The report as scripts read it.
std::string fleet_json_text(const FleetReport& report);

}  // namespace gpuwhy
