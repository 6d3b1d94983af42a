// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/json_fwd.h"
#include "model/conventions.h"
#include "model/gpu.h"
#include "model/llm.h"
#include "model/lower_bound.h"
#include "model/placement.h"
#include "report/document/document.h"

namespace gpuwhy {

// All that `gpuwhy model` found out, to be printed one way or the other.
struct ModelAnswer {
  std::string name;
  Llm llm;
  Placement placement;  // the costs are one GPU's of those that share heads and columns
  MemoryNeed memory;    // at the context of the decode step
  LlmParams params;     // of the whole model
  LlmWork prefill_work;
  LlmWork decode_work;
  LlmCost prefill;
  LlmCost decode;
  std::int64_t prefill_executed_flops = 0;  // an eager kernel's
  std::int64_t decode_executed_flops = 0;   // MLA on compressed vectors
  std::optional<VisionCost> image;
  bool is_gpu_asked = false;
  GpuMatch gpu;
  std::optional<CostBound> prefill_bound;
  std::optional<CostBound> decode_bound;
  std::optional<LinkTime> prefill_links;
  std::optional<LinkTime> decode_links;
  bool is_why_asked = false;
  std::vector<ConventionRow> conventions;
};

Json model_json(const ModelAnswer& answer);
Document model_document(const ModelAnswer& answer);

}  // namespace gpuwhy
