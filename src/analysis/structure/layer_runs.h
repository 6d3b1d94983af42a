// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "analysis/kernels/kernel_stretches.h"
#include "analysis/names/kernel_symbols.h"

namespace gpuwhy {

inline constexpr std::size_t kLeastLayers = 4;

// Layers of one kind of pass: where a kernel that occurs once per layer stands.
struct LayerRun {
  std::vector<std::uint32_t> positions;  // ascending
  std::uint32_t period = 0;              // kernels from one to the next, median
  std::uint32_t num_agreeing = 0;        // symbols that occur as often, at the same distance
};

struct LayerRuns {
  std::vector<LayerRun> with_attention;  // and two products in each layer
  // In the rest, where the first is not empty: two products in each layer. The backward of
  // attention may have no name of its own.
  std::vector<LayerRun> without_attention;
};

// Runs of layers in a stream of kernels, given as symbols in order of start. Linear in the number
// of kernels: a kernel that occurs once per layer recurs at nearly the same distance, whatever
// stands between, and the stretches between hold nearly the same kernels.
LayerRuns find_layer_runs(SymbolStream stream, const KernelSymbols& symbols);

}  // namespace gpuwhy
