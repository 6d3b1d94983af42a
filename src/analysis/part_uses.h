// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "analysis/structure.h"
#include "results/structure.h"
#include "trace/trace.h"

namespace gpuwhy {

// Time of one part of the model on one GPU, over its whole passes.
struct PartUse {
  std::string device;
  std::string pass;         // of PassRow
  std::string block;        // of LayerPartRow
  std::string part;         // of LayerPartRow
  std::int64_t passes = 0;  // of this kind on this GPU
  std::int64_t launches = 0;
  std::int64_t total_ns = 0;
};

// By device, pass, block and part. `kernel_parts` are places in `summary.parts`, by kernel.
std::vector<PartUse> find_part_uses(const Trace& trace, const Structure& structure,
                                    const StructureSummary& summary,
                                    const std::vector<std::uint32_t>& kernel_parts);

}  // namespace gpuwhy
