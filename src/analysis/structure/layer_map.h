// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "analysis/structure/structure.h"
#include "results/structure.h"
#include "trace/trace.h"

namespace gpuwhy {

// The layers of one pass. A layer lasts from its first kernel to that of the next layer, so idle
// time counts.
struct LayerColumn {
  std::int64_t number = 0;    // of the pass on its GPU, from 0
  std::int64_t start_ns = 0;  // of its first layer, from the start of the capture
  std::vector<std::int64_t> layers_ns;
  std::vector<std::uint8_t> blocks;  // by layer: into LayerMap::blocks
};

// A kind of layer.
struct LayerBlock {
  std::string name;            // LayerPartRow::block()
  std::int64_t median_ns = 0;  // of all such layers, on all GPUs
};

// Layers against passes on one GPU.
struct LayerMap {
  std::string pass;    // of PassRow
  std::string device;  // "cuda:0"
  std::int64_t num_layers = 0;
  std::int64_t num_passes = 0;  // whole ones
  std::vector<LayerBlock> blocks;
  std::vector<LayerColumn> columns;  // by number; the slowest and evenly chosen ones
};

// Size limits of all maps together.
struct LayerMapLimits {
  std::size_t most_columns = 200;  // of a map
  std::size_t most_cells = 40'000;
  std::size_t most_maps = 16;
};

// The maps of a recording, by kind of pass and then by GPU. `parts` is of summarise_structure.
std::vector<LayerMap> map_layers(const Trace& trace, const Structure& structure,
                                 const StructureSummary& summary,
                                 const std::vector<std::uint32_t>& parts,
                                 std::int64_t capture_start_ns, const LayerMapLimits& limits = {});

}  // namespace gpuwhy
