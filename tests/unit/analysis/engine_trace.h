// SPDX-License-Identifier: Apache-2.0
//
// Recordings shaped like those of serving engines, and what is true of them.
//
// An engine's worker thread marks each step, prepares it, launches its kernels and goes on to the
// next step, while the GPU still runs this one. A replica is one copy of the model: its workers
// mark the same steps, each on its own GPU, and meet in every all-reduce.
#pragma once

#include <cstdint>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "trace/trace.h"

namespace gpuwhy {

struct EngineShape {
  int depth = 1;         // steps that the host runs ahead of the GPU; 0: it waits for each
  int num_workers = 1;   // processes of a replica: tensor parallelism
  int num_replicas = 1;  // data parallelism; each has batches of its own
  int num_steps = 8;
  int num_warm_up = 2;  // slow steps before the loop is steady
  int mixed_every = 0;  // every n-th step holds a prompt too; 0: none
  int num_layers = 2;
  bool samples_after_marker = false;  // logits and sampling are launched when the marker has closed
  bool has_graphs = true;             // a decode step is one launch; else each kernel is
  bool is_sglang = false;             // marks as SGLang does; else as vLLM does
  bool has_startup = false;           // copies and fills before the first step
  bool has_idle_tail = false;         // the recording goes on after the last step
  bool lacks_first_marker = false;    // of the last worker: the recording began after it
  std::int64_t prepare_ns = 20'000;   // host time of a step before its first launch
};

// A step on one GPU.
struct GpuTimes {
  std::int64_t start_ns = 0;  // of the first kernel
  std::int64_t end_ns = 0;    // of the last work
  std::int64_t work_ns = 0;   // in which its work runs
};

struct EngineStep {
  std::string stage;
  std::int64_t tokens = 0;
  std::int64_t sequences = 0;
  std::int64_t num_kernels = 0;  // of all workers
  // The marker of the first worker.
  std::int64_t host_start_ns = 0;
  std::int64_t host_end_ns = 0;
  std::vector<GpuTimes> gpus;  // by worker
  // Of all workers: from the first kernel to the last work on any GPU, the work on the busiest one.
  std::int64_t gpu_start_ns = 0;
  std::int64_t gpu_window_ns = 0;
  std::int64_t gpu_work_ns = 0;
  std::optional<std::int64_t> period_ns;  // to the first kernel of the next step; the last has none
  bool is_warm_up = false;
};

struct Replica {
  std::vector<std::int64_t> pids;
  std::vector<std::string> devices;
  std::vector<EngineStep> steps;
};

struct EngineTrace {
  Trace trace;
  std::vector<Replica> replicas;
};

// With `noise`, the recording has flaws and unrelated work: kernels, calls and markers are missing,
// a range is left open, other threads and streams work beside the engine. The truth then holds no
// longer.
EngineTrace make_engine_trace(const EngineShape& shape, std::mt19937* noise = nullptr);

// A small one by chance: what engines do, in all mixtures.
EngineShape random_engine(std::mt19937& random);

}  // namespace gpuwhy
