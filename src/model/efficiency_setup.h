// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "model/gpu.h"
#include "model/llm.h"

namespace gpuwhy {

// What a recording does not contain. Numbers given here override those of marks.
struct EfficiencySetup {
  std::string model_name;
  Llm llm;
  GpuMatch gpu;
  std::optional<std::int64_t> prompt_tokens;  // of one sequence
  std::optional<std::int64_t> new_tokens;     // made in one decode loop, of one sequence
  std::optional<std::int64_t> batch;
  std::optional<std::int64_t> context;   // mean over decode steps
  std::optional<VisionCost> image;       // looked at in each prefill
  std::optional<std::int64_t> num_gpus;  // that share one copy of the model
};

}  // namespace gpuwhy
