// SPDX-License-Identifier: Apache-2.0
//
// GPU windows and periods of steps.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "analysis/stages/attribution.h"
#include "analysis/stages/stages.h"
#include "trace/trace.h"

namespace gpuwhy {

// One stage instance on one GPU.
struct StepOnGpu {
  std::uint32_t instance = 0;  // into Stages::instances
  std::uint16_t device = 0;    // into Trace::devices
  // GPU window: from its first own kernel or graph to the end of its last own work.
  std::int64_t gpu_start_ns = 0;
  std::int64_t gpu_end_ns = 0;
  // Ledger window: the GPU's time that is charged to it.
  std::int64_t start_ns = 0;
  std::int64_t end_ns = 0;
  // From its first kernel to that of the next step on this GPU. nullopt: not a step, the last one,
  // or a pause follows.
  std::optional<std::int64_t> period_ns;
  std::uint32_t next = kNone;  // the instance that ends the period
};

// Windows of all instances with GPU work, by instance, then device.
std::vector<StepOnGpu> find_step_windows(const Trace& trace, const Stages& stages,
                                         const Attribution& attribution);

}  // namespace gpuwhy
