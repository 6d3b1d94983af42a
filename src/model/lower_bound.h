// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <optional>
#include <string>

#include "model/gpu.h"
#include "model/llm.h"

namespace gpuwhy {

// The minimum time of work on a GPU: its FLOPs at the dense peak of their data type, or its bytes
// at full bandwidth, whichever takes longer. There is no hidden efficiency factor.
struct CostBound {
  std::optional<double> compute_s;  // nullopt if a peak is unknown: see `reason`
  double memory_s = 0;
  std::optional<double> per_part_s;  // Σ over parts of the longer of the two: tighter, if parts do
                                     // not overlap
  std::string reason;

  // The lower bound; only the memory time if the compute time is unknown.
  double seconds() const { return std::max(compute_s.value_or(0), memory_s); }
  bool is_compute_bound() const { return compute_s.value_or(0) > memory_s; }
};
CostBound bound_of(const Llm& llm, const LlmCost& cost, const GpuSpec& gpu);

// The data type of a part's products: a key of GpuSpec::dense_tflops.
const std::string& dtype_of(const Llm& llm, LlmPart part);

// The batch size at which linear layers become compute-bound on this GPU.
std::optional<double> crossover_batch(const Llm& llm, const GpuSpec& gpu);

}  // namespace gpuwhy
