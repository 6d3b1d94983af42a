// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "model/state_space.h"

namespace gpuwhy {

// Layers with limited attention range.
enum class AttentionReach : std::uint8_t {
  kNever,
  kAlways,       // every layer, when sliding_window is a number
  kIfAsked,      // use_sliding_window, from layer max_window_layers on
  kAlternating,  // even layers
  kPattern,      // all but every sliding_window_pattern-th
  kChunks,       // attention_chunk_size, all but every no_rope_layer_interval-th
};

// Layers that are mixtures of experts.
enum class MoeRule : std::uint8_t {
  kNone,
  kAll,
  kDeepseek,  // from first_k_dense_replace on, every moe_layer_freq-th; or a list of either
  kLlama4,    // every interleave_moe_layer_step-th, or moe_layers
  kQwen,      // every decoder_sparse_step-th that is not among mlp_only_layers
  kListed,    // those of kind "moe", or E in a pattern
  kJamba,     // every expert_layer_period-th, from expert_layer_offset on
};

// Properties of a Hugging Face model_type beyond the numbers in its config.json.
struct ModelFamily {
  const char* model_type;
  AttentionReach window = AttentionReach::kNever;
  MoeRule moe = MoeRule::kNone;
  bool is_tied = false;  // unless tie_word_embeddings says otherwise
  bool has_qkv_bias = false;
  bool has_out_bias = false;
  bool has_qk_norm = false;
  bool has_sinks = false;
  bool has_moe_bias = false;         // router and experts
  bool has_router_bias = false;      // router alone
  bool has_implicit_shared = false;  // one shared expert that no key mentions
  bool has_shared_mlp = false;       // shared_intermediate_size, with experts or without
  bool has_no_out_bias = false;      // attention_bias is for queries, keys and values alone
  bool has_wide_qk_norm = false;
  bool has_out_gate = false;   // of attention, unless attn_output_gate says otherwise
  bool is_classic = false;     // GPT-2: plain MLP, biases everywhere, learned positions
  bool has_plain_mlp = false;  // two matrices, no gate
  int norms_per_layer = 2;
  std::optional<StateKind> state = {};  // of layers that keep one
  bool is_parallel_state = false;       // every layer has both attention and a state
  bool is_compressed = false;           // DeepSeek-V4's attention
  bool has_window_heads = false;        // swa_… sizes for layers with a window
  bool has_mtp = false;                 // what predicts further tokens is a layer like the last
  const char* refused_key = nullptr;    // with it, the model has a part that is not priced
  const char* defaults = "{}";  // of its configuration class, for keys that are often left out
};

// Null for an unknown type.
const ModelFamily* find_family(std::string_view model_type);

}  // namespace gpuwhy
