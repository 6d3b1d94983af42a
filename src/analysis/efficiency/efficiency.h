// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "analysis/analysis.h"
#include "model/efficiency_setup.h"

namespace gpuwhy {

// Compares the stages prefill, decode, decode_step, mixed and verify of an analysis with the
// model's minimum cost. By default all GPUs with kernels are assumed to share the work; for a
// recording with only some ranks of a job, num_gpus must be given.
Efficiency efficiency_of(const Analysis& analysis, const EfficiencySetup& setup);

// Why the recording cannot be of this model: it runs kernels of a mixture of experts and the model
// has none, or the reverse. Empty: nothing speaks against it.
std::string model_mismatch(const Analysis& analysis, const Llm& llm);

// Those of the first GPU that ran kernels, for find_gpu().
std::string gpu_name_of(const Analysis& analysis);
GpuAttributes gpu_attributes_of(const Analysis& analysis);

}  // namespace gpuwhy
