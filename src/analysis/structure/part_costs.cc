// SPDX-License-Identifier: Apache-2.0
//
// Minimum cost of the parts of a model, beside the time they took.
//
// A part reads its weights once per launch, attention its keys and values. The roof of a part is
// the longer of that traffic at full bandwidth and, where the tokens of a pass are known, its
// products at the peak of their type.
//
// What it gets wrong: experts count as if tokens chose them uniformly. Tokens that share experts
// read fewer weights, and the part then looks nearer to its roof than it is.
#include "analysis/structure/part_costs.h"

#include <algorithm>
#include <map>
#include <string_view>

#include <fmt/format.h>

#include "base/error.h"
#include "results/stage_role.h"

namespace gpuwhy {
namespace {

// The multiplied weights of one launch.
struct Weights {
  LlmPart part = LlmPart::kQkv;
  std::int64_t elements = 0;
  std::int64_t per_expert = 0;  // experts: of one, if `elements` depends on how many are taken
};

// By name of the part.
std::map<std::string_view, Weights> weights_of(const Llm& llm) {
  std::map<std::string_view, Weights> weights;
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
  const bool has_dense_mlp =
      std::ranges::none_of(llm.layers, [](const LlmLayer& layer) { return layer.is_moe; });
  if (has_dense_mlp) {
    const std::int64_t matrix = llm.hidden * llm.dense_ff;
    weights["gate_up"] = {LlmPart::kMlp, (llm.mlp_matrices - 1) * matrix};
    weights["gate"] = weights["up"] = weights["down"] = {LlmPart::kMlp, matrix};
  }
  // Shared experts could be any of the products.
  if (llm.moe && llm.moe->latent_width == 0 && llm.moe->shared_ff == 0) {
    const std::int64_t matrix = llm.hidden * llm.moe->expert_ff;
    weights["experts gate_up"] = {LlmPart::kExperts, 0, (llm.mlp_matrices - 1) * matrix};
    weights["experts down"] = {LlmPart::kExperts, 0, matrix};
  }
  weights["lm_head"] = {LlmPart::kLmHead, llm.hidden * llm.vocab};
  return weights;
}

// Tokens of every step, where marks say so and all agree.
std::optional<std::int64_t> tokens_of_steps(const Analysis& analysis) {
  std::optional<std::int64_t> tokens;
  for (const StageStep& step : analysis.stage_steps) {
    if (!step.is_step || !step.tokens || (tokens && tokens != step.tokens)) {
      return std::nullopt;
    }
    tokens = step.tokens;
  }
  return tokens;
}

std::int64_t num_gpus_of(const EfficiencySetup& setup, const Analysis& analysis) {
  const auto busy = std::ranges::count_if(analysis.devices,
                                          [](const DeviceRow& one) { return one.num_kernels > 0; });
  return setup.num_gpus.value_or(std::max<std::int64_t>(1, busy));
}

// What one pass computes, as far as it is known.
struct KnownWork {
  std::optional<std::int64_t> tokens;
  LlmCost cost;  // of `num_passes`
  std::int64_t num_passes = 0;
};

// Prefill or decode: by the pass itself, else by the marks where all steps are of one kind.
StageRole kind_of(const PassRow& pass, const Analysis& analysis) {
  if (!pass.kind.empty() || analysis.structure->passes.size() > 1 || analysis.stage_steps.empty()) {
    return role_of(row_name(pass.kind));
  }
  const RowName& first = analysis.stages[analysis.stage_steps.front().stage].stage;
  const bool are_alike = std::ranges::all_of(analysis.stage_steps, [&](const StageStep& step) {
    return analysis.stages[step.stage].stage == first;
  });
  return !are_alike                              ? StageRole::kOther
         : is_decode(first)                      ? StageRole::kDecode
         : role_of(first) == StageRole::kPrefill ? StageRole::kPrefill
                                                 : StageRole::kOther;
}

// From the user's numbers, else from the sums that the marks of all steps give.
KnownWork work_of(const PassRow& pass, const EfficiencySetup& setup, const Llm& llm,
                  const Analysis& analysis) {
  KnownWork work{tokens_of_steps(analysis), {}, 0};
  const StageRole kind = kind_of(pass, analysis);
  const std::optional<std::int64_t> batch = setup.batch ? setup.batch : work.tokens;
  if (kind == StageRole::kDecode && batch && setup.context) {
    LlmWork step = decode_work(*setup.context, *batch);
    step.is_mla_absorbed = true;
    work = {batch, cost_of(llm, step), 1};
  } else if (kind == StageRole::kPrefill && setup.prompt_tokens) {
    const std::int64_t sequences = setup.batch.value_or(1);
    work = {sequences * *setup.prompt_tokens,
            cost_of(llm, prefill_work(*setup.prompt_tokens, sequences)), 1};
  } else if (kind != StageRole::kOther && analysis.structure->passes.size() == 1 &&
             std::ranges::all_of(analysis.stage_steps, [&](const StageStep& step) {
               return step.counts.is_complete() && is_exact(llm, step.counts);
             })) {
    for (const StageStep& step : analysis.stage_steps) {
      work.cost.add(cost_of(llm, step.counts, CostOf::kExecuted));
      ++work.num_passes;
    }
  }
  return work;
}

// The minimum cost of the parts of one kind of pass.
class PartCosts {
 public:
  PartCosts(const Llm& llm, const GpuSpec& gpu, std::int64_t num_passes, const KnownWork& work)
      : llm_(llm),
        gpu_(gpu),
        weights_(weights_of(llm)),
        num_passes_(num_passes),
        tokens_(work.tokens) {
    if (work.num_passes > 0) {
      add_attention_cost(work);
    }
  }

  void add(LayerPartRow& part) const {
    const auto at = weights_.find(part.part);
    if (at != weights_.end() && part.total_ns > 0 && num_passes_ > 0) {
      add_weights(at->second, part);
    }
  }

  // `parts` are the attention kernels of one layer: the longest stands for all of them.
  void add_attention(const std::vector<LayerPartRow*>& parts) const {
    LayerPartRow& part = **std::ranges::max_element(parts, {}, &LayerPartRow::total_ns);
    double total_ns = 0;
    for (const LayerPartRow* one : parts) {
      total_ns += static_cast<double>(one->total_ns);
    }
    if (kv_bytes_ == 0 || part.launches == 0 || total_ns == 0 || num_passes_ == 0) {
      return;
    }
    part.kv_bytes = kv_bytes_;
    part.flops = attention_flops_;
    const double memory_s = static_cast<double>(kv_bytes_) / gpu_.bytes_per_s();
    const auto peak = gpu_.flops_per_s(llm_.attention_dtype);
    const double compute_s = peak ? static_cast<double>(attention_flops_) / *peak : 0;
    add_roof(std::max(memory_s, compute_s), total_ns / static_cast<double>(part.launches), part);
  }

 private:
  // Keys, values and products of attention in one layer, where all layers are alike.
  void add_attention_cost(const KnownWork& work) {
    const LlmLayer& first = llm_.layers.front();
    const bool are_alike = std::ranges::all_of(llm_.layers, [&](const LlmLayer& layer) {
      return layer.mixer == Mixer::kAttention && layer.reach == first.reach &&
             layer.reach_tokens == first.reach_tokens;
    });
    if (!are_alike || llm_.indexer || llm_.compressed) {
      return;
    }
    const std::int64_t layers = static_cast<std::int64_t>(llm_.layers.size()) * work.num_passes;
    const Count flops = work.cost.flops[LlmPart::kScores] + work.cost.flops[LlmPart::kValues];
    kv_bytes_ = work.cost.kv_read_bytes.value() / layers;
    attention_flops_ = flops.value() / layers;
  }

  void add_weights(const Weights& weights, LayerPartRow& part) const {
    std::int64_t elements = weights.elements;
    // Multiplied by a token; of experts, those that it takes.
    std::int64_t per_token = weights.elements;
    if (weights.per_expert > 0) {
      if (!tokens_) {
        return;
      }
      const long double taken =
          expected_experts(llm_.moe->experts, llm_.moe->experts_per_token, *tokens_);
      elements = static_cast<std::int64_t>(taken * static_cast<long double>(weights.per_expert));
      per_token = llm_.moe->experts_per_token * weights.per_expert;
    }
    part.weight_bytes = llm_.width(weights.part).bytes_of(elements);
    double roof_s = static_cast<double>(*part.weight_bytes) / gpu_.bytes_per_s();
    // lm_head runs on one token of a sequence: of a prefill the number is not known.
    const auto peak = gpu_.flops_per_s(llm_.matmul_dtype);
    if (tokens_ && weights.part != LlmPart::kLmHead && peak) {
      const double flops = 2.0 * static_cast<double>(per_token) * static_cast<double>(*tokens_);
      roof_s = std::max(roof_s, flops / *peak);
      if (flops < 9e18) {
        part.flops = 2 * per_token * *tokens_;
      }
    }
    add_roof(roof_s, part.mean_ns(), part);
  }

  void add_roof(double roof_s, double mean_ns, LayerPartRow& part) const {
    const double mean_s = mean_ns / 1e9;
    part.bytes_per_s = static_cast<double>(part.read_bytes().value_or(0)) / mean_s;
    part.roof_fraction = roof_s / mean_s;
    const double above_ns = std::max(0.0, mean_ns - 1e9 * roof_s);
    part.above_roof_ns = static_cast<std::int64_t>(above_ns * static_cast<double>(part.launches) /
                                                   static_cast<double>(num_passes_));
  }

  const Llm& llm_;
  const GpuSpec& gpu_;
  std::map<std::string_view, Weights> weights_;
  std::int64_t num_passes_;
  std::optional<std::int64_t> tokens_;
  std::int64_t kv_bytes_ = 0;  // of one layer; 0: not known
  std::int64_t attention_flops_ = 0;
};

// The parts of one kind of pass.
void add_costs(const PartCosts& costs, const std::string& pass, std::vector<LayerPartRow>& parts) {
  std::map<std::string_view, std::vector<LayerPartRow*>> attention;  // by kind of layer
  for (LayerPartRow& part : parts) {
    if (part.pass == pass && part.part == "attention") {
      attention[part.block()].push_back(&part);
    } else if (part.pass == pass) {
      costs.add(part);
    }
  }
  for (const auto& [block, of_layer] : attention) {
    costs.add_attention(of_layer);
  }
}

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
  bool has_costs = false;
  for (const PassRow& pass : structure.passes) {
    if (pass.num_layers == static_cast<std::int64_t>(llm.layers.size()) && !pass.is_backward) {
      const PartCosts costs(llm, *setup.gpu.gpu, pass.num_passes,
                            work_of(pass, setup, llm, analysis));
      add_costs(costs, pass.pass, structure.parts);
      has_costs = true;
    }
  }
  if (!has_costs) {
    structure.cost_reason = fmt::format("the model has {} layers, the recording {}",
                                        llm.layers.size(), structure.passes.front().num_layers);
  }
}

}  // namespace gpuwhy
