// SPDX-License-Identifier: Apache-2.0
//
// Translation of a Hugging Face config.json to the shape of a model.
//
// The file is a union of the fields of many classes: one quantity has four names, and one name
// (intermediate_size) is the width of a dense layer in one class and of an expert in another. So
// the family decides which keys are read. An unknown type is read as the most common shape, with a
// note, unless a key tells of a part that this shape lacks: then it has no cost. Multimodal files
// nest the language model under one of three names and repeat the root's tie_word_embeddings; the
// root's wins.
//
// What it gets wrong: custom code shipped with a checkpoint can mean anything. Layers that predict
// further tokens are counted on their own, as published totals leave them out.
#include <algorithm>

#include <fmt/format.h>

#include "base/error.h"
#include "base/json.h"
#include "base/text.h"
#include "model/config_reader.h"
#include "model/families.h"
#include "model/layer_kinds.h"
#include "model/llm.h"
#include "model/quantization.h"
#include "model/unpriced.h"

namespace gpuwhy {
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
      } else if (type == "gemma3" || type == "llama4" || type == "qwen3_5" ||
                 type == "qwen3_5_moe") {
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
  return MlaShape{reader.count("q_lora_rank", 0),    reader.size({"kv_lora_rank"}),
                  reader.size({"qk_nope_head_dim"}), reader.size({"qk_rope_head_dim"}),
                  reader.size({"v_head_dim"}),       reader.flag("mla_use_output_gate", false)};
}

std::optional<IndexerShape> indexer_of(const ConfigReader& reader) {
  if (reader.count("index_topk", 0) == 0) {
    return std::nullopt;
  }
  return IndexerShape{reader.size({"index_n_heads"}), reader.size({"index_head_dim"}),
                      reader.size({"q_lora_rank"})};
}

// Layers with a window may have heads of their own.
std::optional<HeadShape> window_heads_of(const ConfigReader& reader, const ModelFamily& family,
                                         const Llm& llm) {
  if (!family.has_window_heads) {
    return std::nullopt;
  }
  return HeadShape{
      reader.size({"swa_num_attention_heads"}, llm.heads),
      reader.size({"swa_num_key_value_heads"}, llm.kv_heads),
      reader.size({"swa_head_dim"}, llm.head_dim),
      reader.size({"swa_v_head_dim"}, llm.value_dim > 0 ? llm.value_dim : llm.head_dim),
      reader.flag("add_swa_attention_sink_bias", false)};
}

std::int64_t shared_width(const ConfigReader& reader, const ModelFamily& family,
                          std::int64_t expert_ff) {
  if (family.has_implicit_shared) {
    return expert_ff;
  }
  if (family.has_shared_mlp) {
    return reader.count("shared_intermediate_size", 0);
  }
  if (const auto width = reader.find_size(
          {"shared_expert_intermediate_size", "moe_shared_expert_intermediate_size"})) {
    return *width;
  }
  const std::int64_t shared =
      reader.count("n_shared_experts", reader.count("num_shared_experts", 0));
  return (Count(shared) * expert_ff).value();
}

std::optional<MoeShape> moe_of(const ConfigReader& reader, const ModelFamily& family) {
  MoeShape moe;
  for (const char* key : {"n_routed_experts", "num_local_experts", "num_experts"}) {
    moe.experts = moe.experts > 0 ? moe.experts : reader.count(key, 0);
  }
  if (family.moe == MoeRule::kNone || moe.experts == 0) {
    return std::nullopt;
  }
  moe.experts_per_token = reader.size(
      {"num_experts_per_tok", "num_experts_per_token", "experts_per_token", "moe_topk"});
  if (moe.experts_per_token > moe.experts) {
    throw Error(ErrorKind::kInput,
                fmt::format("a token takes {} experts of {}", moe.experts_per_token, moe.experts));
  }
  moe.expert_ff = reader.size({"moe_intermediate_size", "intermediate_size"});
  moe.shared_ff = shared_width(reader, family, moe.expert_ff);
  moe.has_shared_gate = reader.find_size({"shared_expert_intermediate_size"}).has_value();
  moe.latent_width = reader.count("moe_latent_size", 0);
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
      if (reader.has_list("moe_layer_freq")) {
        const auto flags = reader.sizes("moe_layer_freq", {});
        return i < static_cast<std::int64_t>(flags.size()) &&
               flags[static_cast<std::size_t>(i)] != 0;
      }
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
    case MoeRule::kListed:
      return false;
    case MoeRule::kJamba:
      return i % reader.size({"expert_layer_period"}, 2) == reader.count("expert_layer_offset", 1);
  }
  return false;
}

bool is_windowed(const ConfigReader& reader, AttentionReach rule, std::int64_t i) {
  switch (rule) {
    case AttentionReach::kNever:
      return false;
    case AttentionReach::kAlways:
      return true;
    case AttentionReach::kIfAsked:
      return reader.flag("use_sliding_window", false) && i >= reader.count("max_window_layers", 0);
    case AttentionReach::kAlternating:
      return i % 2 == 0;
    case AttentionReach::kPattern:
      return (i + 1) % reader.size({"sliding_window_pattern", "_sliding_window_pattern"}, 6) != 0;
    case AttentionReach::kChunks:
      return (i + 1) % reader.size({"no_rope_layer_interval"}, 4) != 0;
  }
  return false;
}

// Tokens that a layer attends to, besides its reach.
void add_sparsity(const ConfigReader& reader, const Llm& llm, std::size_t i, LlmLayer& layer) {
  if (!llm.indexer || !layer.attends()) {
    return;
  }
  const std::int64_t picked = reader.size({"index_topk"});
  if (llm.compressed) {
    const auto ratios = reader.sizes("compress_ratios", {});
    layer.compressed_by = i < ratios.size() ? ratios[i] : 0;
    // Only short entries are picked from; of the long ones all are attended to.
    layer.has_indexer = layer.compressed_by > 0 && layer.compressed_by < 128;
    layer.picked_entries = layer.has_indexer ? picked : 0;
    return;
  }
  // A layer may take what the indexer of one before it has picked.
  const auto types = reader.texts("indexer_types");
  layer.has_indexer = i >= types.size() || types[i] == "full";
  layer.reach = Reach::kPicked;
  layer.reach_tokens = picked;
}

// `layer_types` or what stands for it, if present, overrides every rule.
std::vector<LlmLayer> layers_of(const ConfigReader& reader, const ModelFamily& family,
                                const LayerKinds& listed, const Llm& llm) {
  const auto num_listed = static_cast<std::int64_t>(listed.kinds.size());
  const auto told = reader.find_size({"num_hidden_layers", "n_layer", "n_layers"});
  const std::int64_t num_layers = told || num_listed == 0
                                      ? reader.size({"num_hidden_layers", "n_layer", "n_layers"})
                                      : num_listed;
  if (num_layers > kMostLayers) {
    throw Error(ErrorKind::kInput, fmt::format("num_hidden_layers is {}, more than the {} this "
                                               "program takes for a model",
                                               num_layers, kMostLayers));
  }
  const bool is_chunked = family.window == AttentionReach::kChunks;
  const auto reach = is_chunked ? reader.find_size({"attention_chunk_size"})
                                : reader.find_size({"sliding_window"});
  std::vector<LlmLayer> layers(static_cast<std::size_t>(num_layers));
  for (std::size_t i = 0; i < layers.size(); ++i) {
    LlmLayer& layer = layers[i];
    const auto index = static_cast<std::int64_t>(i);
    const LayerKind kind = listed.kinds.empty() ? LayerKind::kFull : listed.kinds[i];
    const bool is_short = listed.kinds.empty() ? is_windowed(reader, family.window, index)
                                               : kind == LayerKind::kShort;
    if (reach && is_short) {
      layer.reach = is_chunked ? Reach::kChunk : Reach::kWindow;
      layer.reach_tokens = *reach;
    }
    const bool is_feed_forward = kind == LayerKind::kMlp || kind == LayerKind::kExperts;
    layer.mixer = family.is_parallel_state    ? Mixer::kBoth
                  : is_feed_forward           ? Mixer::kNothing
                  : kind == LayerKind::kState ? Mixer::kState
                                              : Mixer::kAttention;
    // Nemotron-H: a layer either mixes tokens or is an MLP.
    layer.has_feed_forward = family.moe != MoeRule::kListed || is_feed_forward;
    layer.is_moe =
        llm.moe && (kind == LayerKind::kExperts || is_moe_layer(reader, family.moe, index));
    add_sparsity(reader, llm, i, layer);
  }
  return layers;
}

void read_heads(const ConfigReader& reader, Llm& llm) {
  llm.hidden = reader.size({"hidden_size", "n_embd", "d_model", "dim"});
  llm.heads = reader.size({"num_attention_heads", "n_head"});
  llm.kv_heads = reader.size({"num_key_value_heads", "num_kv_heads"},
                             reader.flag("multi_query", false) ? 1 : llm.heads);
  llm.head_dim = reader.size({"head_dim", "attention_head_dim"},
                             std::max<std::int64_t>(llm.hidden / llm.heads, 1));
  if (llm.kv_heads > llm.heads) {
    throw Error(ErrorKind::kInput, fmt::format("{} KV heads are more than the {} attention heads",
                                               llm.kv_heads, llm.heads));
  }
  llm.vocab = reader.size({"vocab_size"});
  llm.mla = mla_of(reader);
}

std::int64_t dense_width(const ConfigReader& reader, const ModelFamily& family, const Llm& llm) {
  if (family.has_shared_mlp) {
    return reader.size({"shared_intermediate_size"});
  }
  return reader.size({"intermediate_size_mlp", "intermediate_size", "n_inner", "ffn_dim"},
                     (Count(4) * llm.hidden).value());
}

void read_family(const ConfigReader& reader, const ModelFamily& family, Llm& llm) {
  llm.has_qkv_bias = family.has_qkv_bias || reader.flag("attention_bias", false);
  llm.has_out_bias =
      family.has_out_bias || (!family.has_no_out_bias && reader.flag("attention_bias", false));
  llm.has_mlp_bias = reader.flag("mlp_bias", false);
  llm.has_wide_qk_norm = family.has_wide_qk_norm && reader.flag("use_qk_norm", true);
  llm.has_qk_norm =
      family.has_qk_norm || (!family.has_wide_qk_norm && reader.flag("use_qk_norm", false));
  llm.has_out_gate = family.has_out_gate && reader.flag("attn_output_gate", true);
  llm.mlp_matrices = family.has_plain_mlp ? 2 : 3;
  llm.has_sinks = family.has_sinks;
  llm.norms_per_layer = family.norms_per_layer;
  if (family.is_classic) {
    llm.mlp_matrices = 2;
    llm.has_mlp_bias = true;
    llm.has_norm_bias = true;
    llm.positions = reader.size({"n_positions"});
  }
}

// What is read only where the family has it.
void read_special_parts(const ConfigReader& reader, const ModelFamily& family, Llm& llm) {
  llm.indexer = indexer_of(reader);
  if (family.is_compressed) {
    llm.compressed = CompressedShape{reader.size({"q_lora_rank"}), reader.size({"o_groups"}),
                                     reader.size({"o_lora_rank"}), reader.size({"hc_mult"})};
  }
  if (family.has_window_heads) {
    llm.value_dim = reader.size({"v_head_dim"}, llm.head_dim);
    llm.window_heads = window_heads_of(reader, family, llm);
  }
}

std::string no_cost_reason(const ConfigReader& reader, const ModelFamily* family,
                           const std::string& model_type) {
  if (family == nullptr) {
    return unpriced_reason(model_type, reader);
  }
  if (family->refused_key != nullptr && reader.has(family->refused_key)) {
    return fmt::format("{}: {} has no cost model", model_type, family->refused_key);
  }
  const LayerKinds listed = layer_kinds(reader, *family);
  if (!listed.unknown.empty()) {
    return fmt::format("{}: a layer of type '{}' has no cost model", model_type, listed.unknown);
  }
  const bool has_state =
      std::count(listed.kinds.begin(), listed.kinds.end(), LayerKind::kState) > 0;
  return has_state && !family->state
             ? fmt::format("{}: linear attention (layer_types) has no cost model", model_type)
             : "";
}

// Layers that predict further tokens.
void read_mtp(const ConfigReader& reader, const ModelFamily& family, Llm& llm) {
  std::int64_t layers = 0;
  for (const char* key : {"num_nextn_predict_layers", "mtp_num_hidden_layers", "num_mtp_modules"}) {
    layers = layers > 0 ? layers : reader.count(key, 0);
  }
  if (layers == 0) {
    return;
  }
  llm.mtp_layers = family.has_mtp ? layers : 0;
  llm.notes.push_back(
      family.has_mtp ? fmt::format("{} weights of layers that predict further tokens are left out",
                                   params_of(llm).mtp)
                     : std::string("layers that predict further tokens are left out"));
}

}  // namespace

Llm llm_from_config(const Json& config) {
  const ConfigReader root(config, "");
  TextConfig text = text_config_of(config);
  Llm llm;
  llm.family = text.model_type;
  const ModelFamily* family = find_family(text.model_type);
  llm.no_cost_reason = no_cost_reason(ConfigReader(text.config, ""), family, text.model_type);
  if (!llm.no_cost_reason.empty()) {
    return llm;
  }
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
  llm.dense_ff = dense_width(reader, *family, llm);
  llm.moe = moe_of(reader, *family);
  read_family(reader, *family, llm);
  read_special_parts(reader, *family, llm);
  llm.layers = layers_of(reader, *family, layer_kinds(reader, *family), llm);
  // Multimodal configurations have the flag at the top or in the text part.
  llm.is_tied = root.find_flag("tie_word_embeddings")
                    .value_or(reader.flag("tie_word_embeddings", family->is_tied));
  llm.vision = vision_from_config(config, llm.hidden);
  if (!llm.vision && config.contains("vision_config")) {
    llm.notes.emplace_back("its vision tower is not known: only the language model is counted");
  }
  read_widths(config, text.config, llm);
  if (family->state) {
    llm.state = state_of(reader, *family->state, llm);
  }
  read_mtp(reader, *family, llm);
  return llm;
}

}  // namespace gpuwhy
