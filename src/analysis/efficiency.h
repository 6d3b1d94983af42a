// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include "analysis/analysis.h"
#include "model/gpu.h"
#include "model/llm.h"

namespace llmprof {

// What a recording does not say itself. Numbers given here beat those of marks.
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

// Holds the stages prefill, decode and decode_step of an analysis against the least that the model
// costs. All GPUs that ran kernels are taken to share the work, where nothing else is said; of a
// recording that holds some ranks of a job only it must be said.
Efficiency efficiency_of(const Analysis& analysis, const EfficiencySetup& setup);

// Device 0's of those that ran kernels, for find_gpu().
std::string gpu_name_of(const Analysis& analysis);
GpuAttributes gpu_attributes_of(const Analysis& analysis);

}  // namespace llmprof
