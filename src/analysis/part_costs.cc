// SPDX-License-Identifier: Apache-2.0
//
// Minimum cost of the parts of a model, beside the time they took.
#include "analysis/part_costs.h"

#include <algorithm>
#include <map>
#include <string_view>

#include <fmt/format.h>

#include "base/error.h"

namespace llmprof {
namespace {

// Multiplied weights of one launch of each part.
std::map<std::string_view, std::pair<LlmPart, std::int64_t>> weights_of(const Llm& llm) {
  std::map<std::string_view, std::pair<LlmPart, std::int64_t>> weights;
  // One size of heads, and nothing but queries, keys and values projected.
  if (!llm.mla && !llm.compressed && !llm.state && !llm.window_heads && !llm.has_out_gate) {
    const std::int64_t query = llm.hidden * llm.heads * llm.head_dim;
    const std::int64_t key = llm.hidden * llm.kv_heads * llm.head_dim;
    weights = {{"qkv", {LlmPart::kQkv, query + 2 * key}},
               {"q", {LlmPart::kQkv, query}},
               {"k", {LlmPart::kQkv, key}},
               {"v", {LlmPart::kQkv, key}},
               {"o", {LlmPart::kOut, query}}};
  }
  const bool has_dense_mlp = std::none_of(llm.layers.begin(), llm.layers.end(),
                                          [](const LlmLayer& layer) { return layer.is_moe; });
  if (has_dense_mlp) {
    const std::int64_t matrix = llm.hidden * llm.dense_ff;
    weights["gate_up"] = {LlmPart::kMlp, (llm.mlp_matrices - 1) * matrix};
    weights["gate"] = weights["up"] = weights["down"] = {LlmPart::kMlp, matrix};
  }
  weights["lm_head"] = {LlmPart::kLmHead, llm.hidden * llm.vocab};
  return weights;
}

// Tokens of every step, where marks say so and all agree.
std::optional<std::int64_t> tokens_of_steps(const Analysis& analysis) {
  std::optional<std::int64_t> tokens;
  for (const StageStep& step : analysis.steps) {
    if (!step.is_step || !step.tokens || (tokens && tokens != step.tokens)) {
      return std::nullopt;
    }
    tokens = step.tokens;
  }
  return tokens;
}

std::int64_t num_gpus_of(const EfficiencySetup& setup, const Analysis& analysis) {
  const auto busy = std::count_if(analysis.devices.begin(), analysis.devices.end(),
                                  [](const DeviceSummary& one) { return one.num_kernels > 0; });
  return setup.num_gpus.value_or(std::max<std::int64_t>(1, busy));
}

class PartCosts {
 public:
  PartCosts(const Llm& llm, const GpuSpec& gpu, std::optional<std::int64_t> tokens)
      : llm_(llm), gpu_(gpu), weights_(weights_of(llm)), tokens_(tokens) {}

  void add(std::int64_t num_passes, PartSummary& part) const {
    const auto at = weights_.find(part.part);
    if (at == weights_.end() || part.total_ns == 0 || num_passes == 0) {
      return;
    }
    const auto& [of, elements] = at->second;
    const double mean_s = part.mean_ns() / 1e9;
    part.weight_bytes = llm_.width(of).bytes_of(elements);
    const auto bytes = static_cast<double>(*part.weight_bytes);
    part.bytes_per_s = bytes / mean_s;
    double roof_s = bytes / gpu_.bytes_per_s();
    if (tokens_) {
      // lm_head runs on one token of a sequence: of a prefill the number is not known.
      const bool is_head = of == LlmPart::kLmHead;
      const auto peak = gpu_.flops_per_s(is_head ? llm_.attention_dtype : llm_.matmul_dtype);
      if (!is_head && peak) {
        const double flops = 2.0 * static_cast<double>(elements) * static_cast<double>(*tokens_);
        roof_s = std::max(roof_s, flops / *peak);
        if (flops < 9e18) {
          part.flops = 2 * elements * *tokens_;
        }
      }
    }
    part.roof_fraction = roof_s / mean_s;
    const double above_ns = std::max(0.0, part.mean_ns() - 1e9 * roof_s);
    part.above_roof_ns = static_cast<std::int64_t>(above_ns * static_cast<double>(part.launches) /
                                                   static_cast<double>(num_passes));
  }

 private:
  const Llm& llm_;
  const GpuSpec& gpu_;
  std::map<std::string_view, std::pair<LlmPart, std::int64_t>> weights_;
  std::optional<std::int64_t> tokens_;
};

}  // namespace

void add_part_costs(const EfficiencySetup& setup, Analysis& analysis) {
  if (!analysis.structure || analysis.structure->passes.empty()) {
    return;
  }
  StructureSummary& structure = *analysis.structure;
  if (!setup.gpu.gpu) {
    structure.cost_reason = setup.gpu.reason;
    return;
  }
  Llm llm;
  try {
    llm = shard_of(setup.llm, num_gpus_of(setup, analysis));
  } catch (const Error& error) {
    structure.cost_reason = error.what();
    return;
  }
  const PartCosts costs(llm, *setup.gpu.gpu, tokens_of_steps(analysis));
  std::map<std::string, std::int64_t> passes;  // of the model's number of layers
  for (const PassSummary& pass : structure.passes) {
    if (pass.num_layers == static_cast<std::int64_t>(llm.layers.size()) && !pass.is_backward) {
      passes.emplace(pass.pass, pass.num_passes);
    }
  }
  if (passes.empty()) {
    structure.cost_reason = fmt::format("the model has {} layers, the recording {}",
                                        llm.layers.size(), structure.passes.front().num_layers);
    return;
  }
  for (PartSummary& part : structure.parts) {
    if (const auto at = passes.find(part.pass); at != passes.end()) {
      costs.add(at->second, part);
    }
  }
}

}  // namespace llmprof
