// SPDX-License-Identifier: Apache-2.0
//
// Translation of a Hugging Face config.json to the shape of a model.
//
// The file is a union of the fields of many classes: one quantity has four names, and one name
// (intermediate_size) is the width of a dense layer in one class and of an expert in another. So
// the family decides which keys are read. An unknown type is read as the most common shape, with a
// note. Multimodal files nest the language model under one of three names and repeat the root's
// tie_word_embeddings; the root's wins.
//
// What it gets wrong: custom code shipped with a checkpoint can mean anything. Multi-token
// prediction heads (num_nextn_predict_layers) are ignored, as published totals ignore them.
#include <algorithm>

#include <fmt/format.h>

#include "base/error.h"
#include "base/json.h"
#include "base/text.h"
#include "model/config_reader.h"
#include "model/families.h"
#include "model/llm.h"
#include "model/quantization.h"

namespace llmprof {
namespace {

constexpr std::int64_t kMostLayers = 4096;

// The mapping of the language model, and its type.
struct TextConfig {
  Json config;
  std::string model_type;
};

TextConfig text_config_of(const Json& root) {
  const ConfigReader reader(root, "");
  std::string type = reader.text("model_type", "");
  for (const char* key : {"text_config", "language_config", "llm_config"}) {
    if (root.contains(key) && root[key].is_object()) {
      const std::string nested = ConfigReader(root[key], key).text("model_type", "");
      if (!nested.empty()) {
        type = nested;
      } else if (type == "gemma3" || type == "llama4") {
        type += "_text";
      } else if (type == "deepseek_vl_v2") {
        type = "deepseek_v2";
      }
      return {root[key], type};
    }
  }
  return {root, type};
}

void fill_defaults(const char* defaults, Json& config) {
  const Json values = parse_json(defaults, "defaults");
  for (const auto& [key, value] : values.items()) {
    if (!config.contains(key)) {
      config[key] = value;
    }
  }
}

std::optional<MlaShape> mla_of(const ConfigReader& reader) {
  if (!reader.flag("use_mla", true) || reader.count("kv_lora_rank", 0) == 0) {
    return std::nullopt;
  }
  return MlaShape{reader.count("q_lora_rank", 0), reader.size({"kv_lora_rank"}),
                  reader.size({"qk_nope_head_dim"}), reader.size({"qk_rope_head_dim"}),
                  reader.size({"v_head_dim"})};
}

std::int64_t shared_width(const ConfigReader& reader, const ModelFamily& family,
                          std::int64_t expert_ff) {
  if (family.has_implicit_shared) {
    return expert_ff;
  }
  if (const auto width = reader.find_size({"shared_expert_intermediate_size"})) {
    return *width;
  }
  return (Count(reader.count("n_shared_experts", 0)) * expert_ff).value();
}

std::optional<MoeShape> moe_of(const ConfigReader& reader, const ModelFamily& family) {
  MoeShape moe;
  moe.experts = reader.size({"n_routed_experts", "num_local_experts", "num_experts"}, 0);
  if (family.moe == MoeRule::kNone || moe.experts == 0) {
    return std::nullopt;
  }
  moe.experts_per_token = reader.size({"num_experts_per_tok", "experts_per_token", "moe_topk"});
  if (moe.experts_per_token > moe.experts) {
    throw Error(ErrorKind::kInput,
                fmt::format("a token takes {} experts of {}", moe.experts_per_token, moe.experts));
  }
  moe.expert_ff = reader.size({"moe_intermediate_size", "intermediate_size"});
  moe.shared_ff = shared_width(reader, family, moe.expert_ff);
  moe.has_shared_gate = reader.find_size({"shared_expert_intermediate_size"}).has_value();
  moe.has_router_bias = family.has_moe_bias || family.has_router_bias;
  moe.has_expert_bias = family.has_moe_bias;
  return moe;
}

// Whether layer i has experts. Every family has a rule of its own, with different fields and
// counting from 0 or from 1.
bool is_moe_layer(const ConfigReader& reader, MoeRule rule, std::int64_t i) {
  const auto among = [i](const std::vector<std::int64_t>& list) {
    return std::find(list.begin(), list.end(), i) != list.end();
  };
  switch (rule) {
    case MoeRule::kNone:
      return false;
    case MoeRule::kAll:
      return true;
    case MoeRule::kDeepseek:
      return i >= reader.count("first_k_dense_replace", 0) &&
             i % reader.size({"moe_layer_freq"}, 1) == 0;
    case MoeRule::kLlama4:
      if (const auto listed = reader.sizes("moe_layers", {}); !listed.empty()) {
        return among(listed);
      }
      return (i + 1) % reader.size({"interleave_moe_layer_step"}, 1) == 0;
    case MoeRule::kQwen:
      return (i + 1) % reader.size({"decoder_sparse_step"}, 1) == 0 &&
             !among(reader.sizes("mlp_only_layers", {}));
  }
  return false;
}

bool is_windowed(const ConfigReader& reader, WindowRule rule, std::int64_t i) {
  switch (rule) {
    case WindowRule::kNever:
      return false;
    case WindowRule::kAlways:
      return true;
    case WindowRule::kIfAsked:
      return reader.flag("use_sliding_window", false) && i >= reader.count("max_window_layers", 0);
    case WindowRule::kAlternating:
      return i % 2 == 0;
    case WindowRule::kPattern:
      return (i + 1) % reader.size({"sliding_window_pattern", "_sliding_window_pattern"}, 6) != 0;
    case WindowRule::kChunks:
      return (i + 1) % reader.size({"no_rope_layer_interval"}, 4) != 0;
  }
  return false;
}

// `layer_types`, if present, overrides every rule.
std::vector<bool> listed_windows(const ConfigReader& reader, std::int64_t num_layers) {
  std::vector<bool> windows;
  for (const std::string& type : reader.texts("layer_types")) {
    windows.push_back(type == "sliding_attention" || type == "chunked_attention");
  }
  if (!windows.empty() && static_cast<std::int64_t>(windows.size()) != num_layers) {
    throw Error(ErrorKind::kInput, fmt::format("layer_types has {} entries for {} layers",
                                               windows.size(), num_layers));
  }
  return windows;
}

std::vector<LlmLayer> layers_of(const ConfigReader& reader, const ModelFamily& family,
                                bool has_moe) {
  const std::int64_t num_layers = reader.size({"num_hidden_layers", "n_layer", "n_layers"});
  if (num_layers > kMostLayers) {
    throw Error(ErrorKind::kInput, fmt::format("num_hidden_layers is {}, more than the {} this "
                                               "program takes for a model",
                                               num_layers, kMostLayers));
  }
  const bool is_chunked = family.window == WindowRule::kChunks;
  const auto reach = is_chunked ? reader.find_size({"attention_chunk_size"})
                                : reader.find_size({"sliding_window"});
  const std::vector<bool> listed = listed_windows(reader, num_layers);
  std::vector<LlmLayer> layers(static_cast<std::size_t>(num_layers));
  for (std::size_t i = 0; i < layers.size(); ++i) {
    const auto index = static_cast<std::int64_t>(i);
    const bool is_short = listed.empty() ? is_windowed(reader, family.window, index) : listed[i];
    if (reach && is_short) {
      layers[i].reach = is_chunked ? Reach::kChunk : Reach::kWindow;
      layers[i].reach_tokens = *reach;
    }
    layers[i].is_moe = has_moe && is_moe_layer(reader, family.moe, index);
  }
  return layers;
}

void read_heads(const ConfigReader& reader, Llm& llm) {
  llm.hidden = reader.size({"hidden_size", "n_embd", "d_model", "dim"});
  llm.heads = reader.size({"num_attention_heads", "n_head"});
  llm.kv_heads = reader.size({"num_key_value_heads", "num_kv_heads"},
                             reader.flag("multi_query", false) ? 1 : llm.heads);
  llm.head_dim = reader.size({"head_dim"}, std::max<std::int64_t>(llm.hidden / llm.heads, 1));
  if (llm.kv_heads > llm.heads) {
    throw Error(ErrorKind::kInput, fmt::format("{} KV heads are more than the {} attention heads",
                                               llm.kv_heads, llm.heads));
  }
  llm.vocab = reader.size({"vocab_size"});
  llm.mla = mla_of(reader);
}

std::int64_t dense_width(const ConfigReader& reader, const Llm& llm) {
  return reader.size({"intermediate_size_mlp", "intermediate_size", "n_inner", "ffn_dim"},
                     (Count(4) * llm.hidden).value());
}

void read_family(const ConfigReader& reader, const ModelFamily& family, Llm& llm) {
  llm.has_qkv_bias = family.has_qkv_bias || reader.flag("attention_bias", false);
  llm.has_out_bias = family.has_out_bias || reader.flag("attention_bias", false);
  llm.has_mlp_bias = reader.flag("mlp_bias", false);
  llm.has_qk_norm = family.has_qk_norm;
  llm.has_sinks = family.has_sinks;
  llm.norms_per_layer = family.norms_per_layer;
  if (family.is_classic) {
    llm.mlp_matrices = 2;
    llm.has_mlp_bias = true;
    llm.has_norm_bias = true;
    llm.positions = reader.size({"n_positions"});
  }
}

}  // namespace

Llm llm_from_config(const Json& config) {
  const ConfigReader root(config, "");
  TextConfig text = text_config_of(config);
  Llm llm;
  llm.family = text.model_type;
  const ModelFamily* family = find_family(text.model_type);
  // An unknown family is counted as the most common architecture, with a note.
  if (family == nullptr) {
    family = find_family("llama");
    llm.notes.push_back(
        fmt::format("model_type '{}' is not known: counted as a plain transformer with a gated MLP",
                    printable(text.model_type)));
  }
  fill_defaults(family->defaults, text.config);
  const ConfigReader reader(text.config, "");
  read_heads(reader, llm);
  llm.dense_ff = dense_width(reader, llm);
  llm.moe = moe_of(reader, *family);
  read_family(reader, *family, llm);
  llm.layers = layers_of(reader, *family, llm.moe.has_value());
  // Multimodal configurations have the flag at the top or in the text part.
  llm.is_tied = root.find_flag("tie_word_embeddings")
                    .value_or(reader.flag("tie_word_embeddings", family->is_tied));
  llm.vision = vision_from_config(config, llm.hidden);
  if (!llm.vision && config.contains("vision_config")) {
    llm.notes.emplace_back("its vision tower is not known: only the language model is counted");
  }
  if (reader.count("num_nextn_predict_layers", 0) > 0) {
    llm.notes.emplace_back("layers that predict further tokens are left out");
  }
  read_widths(config, text.config, llm);
  return llm;
}

}  // namespace llmprof
