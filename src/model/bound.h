// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <optional>
#include <string>

#include "model/gpu.h"
#include "model/llm.h"

namespace llmprof {

// The least time work can take on a GPU: its FLOPs at the dense peak of the type they execute in,
// its bytes at full bandwidth, whichever is longer. No efficiency factor is hidden in it.
struct CostBound {
  std::optional<double> compute_s;  // nothing when a peak is not known: see `reason`
  double memory_s = 0;
  std::optional<double> per_part_s;  // Σ over parts of the longer of the two: tighter, if parts do
                                     // not overlap
  std::string reason;

  // Never less than this; the memory's alone where the compute is not known.
  double seconds() const { return std::max(compute_s.value_or(0), memory_s); }
  bool is_compute_bound() const { return compute_s.value_or(0) > memory_s; }
};
CostBound bound_of(const Llm& llm, const LlmCost& cost, const GpuSpec& gpu);

// The type a part's products execute in: a key of GpuSpec::dense_tflops.
const std::string& dtype_of(const Llm& llm, LlmPart part);

// The batch at which linear layers stop being bound by memory on this GPU.
std::optional<double> crossover_batch(const Llm& llm, const GpuSpec& gpu);

}  // namespace llmprof
