// SPDX-License-Identifier: Apache-2.0
//
// Summary of one rank: sums, minima, maxima and histograms of its recording, about 100 KB however
// long it ran. Integers only, so that any order of adding gives the same bytes.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "results/durations.h"
#include "results/field.h"

namespace gpuwhy {

// Beside kFormRanks (summary.gpuwhy) and kFormHistory (the tables as Parquet): the tables of a
// server. Columns have the order of the descriptions; in summary.gpuwhy texts come first.
inline constexpr unsigned kFormServer = 4;
inline constexpr Field kInAll = in(kFormRanks | kFormHistory | kFormServer, {});
inline constexpr Field kInSummary = in(kFormRanks, {});
inline constexpr Field kInFiles = in(kFormRanks | kFormHistory, {});
// The same for what is not known where it is empty or 0.
inline constexpr Field kMaybeInAll = in(kFormRanks | kFormHistory | kFormServer, maybe(""));
inline constexpr Field kMaybeInFiles = in(kFormRanks | kFormHistory, maybe(""));

// Fields that have the same description.
template <typename F, typename Member, typename... Rest>
void fields(F& f, const Field& field, const char* key, Member member, Rest... rest) {
  f(key, member, field);
  if constexpr (sizeof...(rest) > 0) {
    fields(f, field, rest...);
  }
}

// Origin of a summary. Empty and 0 mean unknown.
struct RankIdentity {
  std::string run_id;  // one for all ranks of a job
  std::int64_t rank = 0;
  std::int64_t num_ranks = 0;  // the job's, as its launcher said
  std::int64_t attempt = 0;    // increases when a job is requeued
  std::string node;
  std::string gpu;  // "NVIDIA H100 80GB HBM3"
  std::string model;
  std::string engine;
  std::string engine_version;
  std::string driver_version;
  std::string gpuwhy_version;
  std::int64_t started_unix_s = 0;
  std::string recorded_by;       // "nsys", "kineto", "bare": only timed; "generated"
  std::int64_t exit_code = 0;    // of the program; 128 + a signal's number
  std::string communicators_by;  // how collectives got their communicator, in words
  // Why there is no recording, though one was asked for: a code of capture/reason.h. It says
  // nothing about the program, whose exit code is above.
  std::string failure = {};
  std::string labels = {};  // of the site: fleet/summary/labels.h
  // The rank was told, not assumed; not part of the file.
  bool is_rank_told = false;
};

template <typename F>
void describe(const RankIdentity*, F&& f) {
  using T = RankIdentity;
  // Every row of the tables as Parquet begins with run, attempt and rank.
  fields(f, kInSummary, "run_id", &T::run_id, "rank", &T::rank);
  f("num_ranks", &T::num_ranks, kMaybeInFiles);
  f("attempt", &T::attempt, kInSummary);
  fields(f, kMaybeInFiles, "node", &T::node, "gpu", &T::gpu, "model", &T::model, "engine",
         &T::engine, "engine_version", &T::engine_version, "driver_version", &T::driver_version,
         "gpuwhy_version", &T::gpuwhy_version, "started_unix_s", &T::started_unix_s, "recorded_by",
         &T::recorded_by);
  f("exit_code", &T::exit_code, kInFiles);
  f("communicators_by", &T::communicators_by, kInSummary);
  fields(f, kMaybeInFiles, "failure", &T::failure, "labels", &T::labels);
}

// A kernel in a stage.
struct KernelName {
  std::string stage;
  std::string kernel;  // whole name
  std::string family;

  auto operator<=>(const KernelName&) const = default;
};

// The same, summed over its launches (and, in a merge, over ranks).
struct KernelSums : KernelName, Durations {};

template <typename F>
void describe(const KernelSums*, F&& f) {
  using T = KernelSums;
  fields(f, kInAll, "stage", &T::stage, "kernel", &T::kernel, "family", &T::family, "calls",
         &T::calls, "total_ns", &T::total_ns, "min_ns", &T::min_ns, "max_ns", &T::max_ns);
  Field histogram = kMaybeInAll;
  histogram.info.count = "launches";
  f("histogram", &T::histogram, histogram);
}

// A stage, summed over its instances.
struct StageSums {
  std::string stage;
  std::int64_t instances = 0;
  std::int64_t total_ns = 0;  // on the host
  std::int64_t min_ns = 0;
  std::int64_t max_ns = 0;
  std::int64_t tokens = 0;
  std::int64_t kernel_ns = 0;
  std::int64_t window_ns = 0;  // of the ledger, summed over the rank's GPUs
  BucketTimes buckets_ns{};    // sum to window_ns
  // MFU and MBU as numerator and denominator, because ratios cannot be added. 0/0: unknown.
  std::int64_t model_flops = 0;
  std::int64_t peak_flops = 0;  // what the GPU could have done in the same time
  std::int64_t model_bytes = 0;
  std::int64_t peak_bytes = 0;
};

template <typename F>
void describe(const StageSums*, F&& f) {
  using T = StageSums;
  fields(f, kInAll, "stage", &T::stage, "instances", &T::instances, "total_ns", &T::total_ns,
         "min_ns", &T::min_ns, "max_ns", &T::max_ns, "tokens", &T::tokens, "kernel_ns",
         &T::kernel_ns, "window_ns", &T::window_ns, "buckets_ns", &T::buckets_ns);
  fields(f, kMaybeInAll, "model_flops", &T::model_flops, "peak_flops", &T::peak_flops,
         "model_bytes", &T::model_bytes, "peak_bytes", &T::peak_bytes);
}

// One collective as a rank recorded it. The n-th of a communicator is the same on every rank.
struct CollectiveRow {
  std::string communicator;
  std::int64_t sequence = 0;  // of the communicator on this GPU, from 0 in time order
  std::string stage;
  std::string kernel;
  // Since the rank's recording began: clocks of ranks are not compared.
  std::int64_t arrival_ns = 0;
  std::int64_t duration_ns = 0;
  std::string device = {};  // the rank's; not part of the file
};

template <typename F>
void describe(const CollectiveRow*, F&& f) {
  using T = CollectiveRow;
  fields(f, kInFiles, "communicator", &T::communicator, "sequence", &T::sequence, "stage",
         &T::stage, "kernel", &T::kernel, "arrival_ns", &T::arrival_ns, "duration_ns",
         &T::duration_ns);
}

// One operation of a rank in a group of ranks that the recording names, summed over its calls.
struct GroupRow {
  std::string communicator;
  std::string operation;    // "all_reduce", "send"; as recorded where it is not known
  std::string description;  // of the group, in the words of the program; may be empty
  std::string ranks;        // of the group: "0-7", "0-56 by 8", "0, 3, 5"; empty: not recorded
  std::int64_t size = 0;    // ranks of the group; 0: not recorded
  std::int64_t calls = 0;
  std::int64_t total_ns = 0;
  // Layers of the model, in whole passes: how many there are, how many contain a call, and the
  // calls in them.
  std::int64_t forward_layers = 0;
  std::int64_t forward_layers_with = 0;
  std::int64_t forward_calls = 0;
  std::int64_t backward_layers = 0;
  std::int64_t backward_calls = 0;
  std::string device = {};  // the rank's; not part of the file
};

template <typename F>
void describe(const GroupRow*, F&& f) {
  using T = GroupRow;
  fields(f, kInFiles, "communicator", &T::communicator, "operation", &T::operation);
  fields(f, kMaybeInFiles, "description", &T::description, "ranks", &T::ranks, "size", &T::size);
  fields(f, kInFiles, "calls", &T::calls, "total_ns", &T::total_ns);
  fields(f, kInSummary, "forward_layers", &T::forward_layers, "forward_layers_with",
         &T::forward_layers_with, "forward_calls", &T::forward_calls, "backward_layers",
         &T::backward_layers, "backward_calls", &T::backward_calls);
}

// A part of the model on one rank, over all its whole passes.
struct PartRow {
  std::string pass;   // "forward", "backward"; with a number where there are several
  std::string block;  // "prologue", "layer", "layer B" where kinds of layers differ, "epilogue"
  std::string part;   // "qkv", "attention"; the family of its kernels where it is not known
  std::int64_t passes = 0;
  std::int64_t launches = 0;
  std::int64_t total_ns = 0;
  std::string device = {};  // the rank's; not part of the file
};

template <typename F>
void describe(const PartRow*, F&& f) {
  using T = PartRow;
  fields(f, kInAll, "pass", &T::pass, "block", &T::block, "part", &T::part, "passes", &T::passes,
         "launches", &T::launches, "total_ns", &T::total_ns);
}

// Everything one rank contributes.
struct RankSummary {
  RankIdentity identity;
  std::vector<StageSums> stages;           // by name
  std::vector<KernelSums> kernels;         // by stage, kernel, family
  std::vector<CollectiveRow> collectives;  // by communicator, sequence
  std::vector<GroupRow> groups = {};       // by communicator, operation
  std::vector<PartRow> parts = {};         // by pass, block, part
};

// Sorted ranks as a short text: "0-7", "0-56 by 8", "0, 3, 5".
std::string ranks_text(const std::vector<std::int64_t>& ranks);

}  // namespace gpuwhy
