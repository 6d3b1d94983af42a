// SPDX-License-Identifier: Apache-2.0
//
// Summary of one rank: sums, minima, maxima and histograms of its recording, about 100 KB however
// long it ran. Integers only, so that any order of adding gives the same bytes.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "results/bucket.h"

namespace gpuwhy {

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

// A kernel in a stage, summed over its launches (and, in a merge, over ranks).
struct KernelCell {
  std::string stage;
  std::string kernel;  // whole name
  std::string family;
  std::int64_t calls = 0;
  std::int64_t total_ns = 0;
  std::int64_t min_ns = 0;
  std::int64_t max_ns = 0;
  std::map<int, std::int64_t> histogram;  // analysis/duration_histogram.h: step -> launches
};

// A stage, summed over its instances.
struct StageCell {
  std::string stage;
  std::int64_t instances = 0;
  std::int64_t total_ns = 0;  // on the host
  std::int64_t min_ns = 0;
  std::int64_t max_ns = 0;
  std::int64_t tokens = 0;
  std::int64_t kernel_ns = 0;
  std::int64_t window_ns = 0;                          // of the ledger, summed over the rank's GPUs
  std::array<std::int64_t, kNumBuckets> buckets_ns{};  // sum to window_ns
  // MFU and MBU as numerator and denominator, because ratios cannot be added. 0/0: unknown.
  std::int64_t model_flops = 0;
  std::int64_t peak_flops = 0;  // what the GPU could have done in the same time
  std::int64_t model_bytes = 0;
  std::int64_t peak_bytes = 0;
};

// One collective as this rank recorded it. The n-th of a communicator is the same on every rank.
struct CollectiveCall {
  std::string communicator;
  std::int64_t sequence = 0;
  std::string stage;
  std::string kernel;
  std::int64_t arrival_ns =
      0;  // since the rank's recording began: clocks of ranks are not compared
  std::int64_t duration_ns = 0;
};

// One operation of a rank in a group of ranks that the recording names, summed over its calls.
struct GroupCell {
  std::string communicator;
  std::string operation;    // "all_reduce", "send"
  std::string description;  // of the group, in the words of the program; may be empty
  std::string ranks;        // of the group: "0-7", "0-56 by 8"; empty: not recorded
  std::int64_t size = 0;    // ranks of the group; 0: not recorded
  std::int64_t calls = 0;
  std::int64_t total_ns = 0;
  // Layers of the model: how many there are, how many contain a call, and the calls in them.
  std::int64_t forward_layers = 0;
  std::int64_t forward_layers_with = 0;
  std::int64_t forward_calls = 0;
  std::int64_t backward_layers = 0;
  std::int64_t backward_calls = 0;
};

// A part of the model on one rank, over all its whole passes.
struct PartCell {
  std::string pass;   // "forward", "backward"; with a number where there are several
  std::string block;  // "prologue", "layer", "layer B" where kinds of layers differ, "epilogue"
  std::string part;   // "qkv", "attention"; the family of its kernels where it is not known
  std::int64_t passes = 0;
  std::int64_t launches = 0;
  std::int64_t total_ns = 0;
};

// Everything one rank contributes.
struct RankSummary {
  RankIdentity identity;
  std::vector<StageCell> stages;            // by name
  std::vector<KernelCell> kernels;          // by stage, kernel, family
  std::vector<CollectiveCall> collectives;  // by communicator, sequence
  std::vector<GroupCell> groups = {};       // by communicator, operation
  std::vector<PartCell> parts = {};         // by pass, block, part
};

}  // namespace gpuwhy
