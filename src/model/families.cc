// SPDX-License-Identifier: Apache-2.0
//
// Properties of model types that a config.json does not state.
//
// They come from the modelling code in Hugging Face transformers (configuration_<type>.py for
// defaults, modeling_<type>.py for biases and norms). Each is verified by the parameter count of a
// published checkpoint in tests/data.
//
// A config.json is written as a difference to its class: Gemma 3 omits even its vocabulary size.
// Defaults are given only for keys that published files really omit. Taking all defaults of a class
// would turn a truncated file into a plausible other model.
#include "model/families.h"

namespace llmprof {
namespace {

constexpr ModelFamily kFamilies[] = {
    {.model_type = "llama"},
    {.model_type = "mistral",
     .window = WindowRule::kAlways,
     .defaults = R"({"sliding_window": 4096})"},
    {.model_type = "mixtral", .window = WindowRule::kAlways, .moe = MoeRule::kAll},
    {.model_type = "qwen2", .window = WindowRule::kIfAsked, .has_qkv_bias = true},
    {.model_type = "qwen2_vl", .window = WindowRule::kIfAsked, .has_qkv_bias = true},
    {.model_type = "qwen2_vl_text", .window = WindowRule::kIfAsked, .has_qkv_bias = true},
    {.model_type = "qwen2_5_vl", .window = WindowRule::kIfAsked, .has_qkv_bias = true},
    {.model_type = "qwen2_5_vl_text", .window = WindowRule::kIfAsked, .has_qkv_bias = true},
    {.model_type = "qwen2_moe",
     .window = WindowRule::kIfAsked,
     .moe = MoeRule::kQwen,
     .has_qkv_bias = true},
    {.model_type = "qwen3",
     .window = WindowRule::kIfAsked,
     .has_qk_norm = true,
     .defaults = R"({"head_dim": 128})"},
    {.model_type = "qwen3_moe",
     .window = WindowRule::kIfAsked,
     .moe = MoeRule::kQwen,
     .has_qk_norm = true},
    {.model_type = "gemma", .is_tied = true, .defaults = R"({"head_dim": 256})"},
    {.model_type = "gemma2",
     .window = WindowRule::kAlternating,
     .is_tied = true,
     .norms_per_layer = 4,
     .defaults = R"({"head_dim": 256, "sliding_window": 4096})"},
    {.model_type = "gemma3_text",
     .window = WindowRule::kPattern,
     .is_tied = true,
     .has_qk_norm = true,
     .norms_per_layer = 4,
     .defaults = R"({"vocab_size": 262208, "num_attention_heads": 8, "num_key_value_heads": 4,
                     "head_dim": 256, "sliding_window": 4096, "sliding_window_pattern": 6})"},
    {.model_type = "phi3", .window = WindowRule::kAlways},
    {.model_type = "deepseek_v2",
     .moe = MoeRule::kDeepseek,
     .defaults = R"({"q_lora_rank": 1536, "kv_lora_rank": 512, "qk_nope_head_dim": 128,
                     "qk_rope_head_dim": 64, "v_head_dim": 128})"},
    {.model_type = "deepseek_v3",
     .moe = MoeRule::kDeepseek,
     .has_router_bias = true,
     .defaults = R"({"q_lora_rank": 1536, "kv_lora_rank": 512, "qk_nope_head_dim": 128,
                     "qk_rope_head_dim": 64, "v_head_dim": 128})"},
    {.model_type = "gpt_oss",
     .window = WindowRule::kAlternating,
     .moe = MoeRule::kAll,
     .has_qkv_bias = true,
     .has_out_bias = true,
     .has_sinks = true,
     .has_moe_bias = true,
     .defaults = R"({"head_dim": 64, "sliding_window": 128})"},
    {.model_type = "llama4_text",
     .window = WindowRule::kChunks,
     .moe = MoeRule::kLlama4,
     .has_implicit_shared = true,
     .defaults = R"({"head_dim": 128, "attention_chunk_size": 8192, "num_experts_per_tok": 1,
                     "num_local_experts": 16, "interleave_moe_layer_step": 1,
                     "intermediate_size_mlp": 16384, "no_rope_layer_interval": 4})"},
    {.model_type = "gpt2",
     .is_tied = true,
     .has_qkv_bias = true,
     .has_out_bias = true,
     .is_classic = true,
     .defaults = R"({"n_positions": 1024})"},
    {.model_type = "gpt_bigcode",
     .is_tied = true,
     .has_qkv_bias = true,
     .has_out_bias = true,
     .is_classic = true,
     .defaults = R"({"n_positions": 1024, "multi_query": true})"},
};

}  // namespace

const ModelFamily* find_family(std::string_view model_type) {
  for (const ModelFamily& family : kFamilies) {
    if (model_type == family.model_type) {
      return &family;
    }
  }
  return nullptr;
}

}  // namespace llmprof
