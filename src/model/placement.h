// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "model/gpu.h"
#include "model/llm.h"

namespace gpuwhy {

// How GPUs share one copy of a model.
struct Placement {
  std::int64_t tensor = 1;    // heads and columns are divided
  std::int64_t pipeline = 1;  // layers are divided
  std::int64_t expert = 1;    // experts are divided instead of their columns

  std::int64_t num_gpus() const { return (Count(tensor) * pipeline).value(); }
};

// Bytes on the GPU that holds most.
struct MemoryNeed {
  std::int64_t weight_bytes = 0;
  SequenceBytes sequence;  // of one at a context length

  // Sequences that fit beside the weights into `bytes`; 0 if not even one does.
  std::int64_t sequences_in(std::int64_t bytes) const;
};
// Throws kUsage if sizes do not divide.
MemoryNeed memory_need(const Llm& llm, const Placement& placement, std::int64_t context);

// The share of a GPU's memory that engines use by default; the rest is for activations and graphs.
inline constexpr double kUsedMemoryFraction = 0.9;
// That share in bytes; nullopt if the row has no memory. Of a row with several, the smallest.
std::optional<std::int64_t> usable_bytes(const GpuSpec& gpu);

// What tensor parallelism sends between GPUs in one pass.
struct LinkTime {
  std::int64_t all_reduces = 0;
  std::int64_t bytes = 0;         // of one all-reduce: the activations of the pass
  std::optional<double> seconds;  // nullopt: see `reason`
  std::string reason;
};
// The least: every GPU sends and receives each sum once, as switches that add can do.
LinkTime link_time(const Llm& llm, std::int64_t tokens, const Placement& placement,
                   const GpuSpec& gpu);

}  // namespace gpuwhy
