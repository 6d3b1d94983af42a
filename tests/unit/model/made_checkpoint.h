// SPDX-License-Identifier: Apache-2.0
//
// Headers of checkpoints, made from first principles: the tensors that a model of a given shape
// has, under the names of llama.cpp and of transformers. It does not use the cost model.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/json.h"

namespace gpuwhy {

struct MadeTensor {
  std::string gguf_name;
  std::string hf_name;
  std::vector<std::uint64_t> shape;  // rows last, as GGUF has them; safetensors the other way round
};

// The tensors of a model whose config.json is `config`: Llama, Mixtral, Qwen2, Qwen3, Gemma 2,
// DeepSeek-V2 and gpt-oss.
inline std::vector<MadeTensor> made_tensors(const Json& config) {
  const std::string type = config.at("model_type");
  const auto get = [&](const char* key, std::uint64_t otherwise) {
    return config.contains(key) && !config[key].is_null() ? config[key].get<std::uint64_t>()
                                                          : otherwise;
  };
  const std::uint64_t hidden = get("hidden_size", 0);
  const std::uint64_t heads = get("num_attention_heads", 0);
  const std::uint64_t kv_heads = get("num_key_value_heads", heads);
  const std::uint64_t head_dim = get("head_dim", hidden / heads);
  const std::uint64_t vocab = get("vocab_size", 0);
  const std::uint64_t ff = get("intermediate_size", 0);
  const std::uint64_t experts =
      get("num_local_experts", get("n_routed_experts", get("num_experts", 0)));
  const std::uint64_t expert_ff = get("moe_intermediate_size", ff);
  const std::uint64_t kv_rank = get("kv_lora_rank", 0);
  const bool is_oss = type == "gpt_oss";
  std::vector<MadeTensor> tensors;
  const auto add = [&](const std::string& gguf, const std::string& hf,
                       std::vector<std::uint64_t> shape) {
    tensors.push_back({gguf, hf, std::move(shape)});
  };
  add("token_embd.weight", "model.embed_tokens.weight", {hidden, vocab});
  add("output_norm.weight", "model.norm.weight", {hidden});
  if (!config.value("tie_word_embeddings", type == "gemma2")) {
    add("output.weight", "lm_head.weight", {hidden, vocab});
  }
  for (std::uint64_t i = 0; i < get("num_hidden_layers", 0); ++i) {
    const std::string blk = "blk." + std::to_string(i) + ".";
    const std::string layer = "model.layers." + std::to_string(i) + ".";
    const auto put = [&](const char* gguf, const char* hf, std::vector<std::uint64_t> shape) {
      add(blk + gguf, layer + hf, std::move(shape));
    };
    put("attn_norm.weight", "input_layernorm.weight", {hidden});
    put("ffn_norm.weight", "post_attention_layernorm.weight", {hidden});
    if (type == "gemma2") {
      put("post_attention_norm.weight", "pre_feedforward_layernorm.weight", {hidden});
      put("post_ffw_norm.weight", "post_feedforward_layernorm.weight", {hidden});
    }
    if (kv_rank > 0) {
      const std::uint64_t nope = get("qk_nope_head_dim", 0);
      const std::uint64_t rope = get("qk_rope_head_dim", 0);
      const std::uint64_t value = get("v_head_dim", 0);
      put("attn_q.weight", "self_attn.q_proj.weight", {hidden, heads * (nope + rope)});
      put("attn_kv_a_mqa.weight", "self_attn.kv_a_proj_with_mqa.weight", {hidden, kv_rank + rope});
      put("attn_kv_a_norm.weight", "self_attn.kv_a_layernorm.weight", {kv_rank});
      put("attn_kv_b.weight", "self_attn.kv_b_proj.weight", {kv_rank, heads * (nope + value)});
      put("attn_output.weight", "self_attn.o_proj.weight", {heads * value, hidden});
    } else {
      put("attn_q.weight", "self_attn.q_proj.weight", {hidden, heads * head_dim});
      put("attn_k.weight", "self_attn.k_proj.weight", {hidden, kv_heads * head_dim});
      put("attn_v.weight", "self_attn.v_proj.weight", {hidden, kv_heads * head_dim});
      put("attn_output.weight", "self_attn.o_proj.weight", {heads * head_dim, hidden});
    }
    if (type == "qwen2" || is_oss) {
      put("attn_q.bias", "self_attn.q_proj.bias", {heads * head_dim});
      put("attn_k.bias", "self_attn.k_proj.bias", {kv_heads * head_dim});
      put("attn_v.bias", "self_attn.v_proj.bias", {kv_heads * head_dim});
    }
    if (type == "qwen3") {
      put("attn_q_norm.weight", "self_attn.q_norm.weight", {head_dim});
      put("attn_k_norm.weight", "self_attn.k_norm.weight", {head_dim});
    }
    if (is_oss) {
      put("attn_output.bias", "self_attn.o_proj.bias", {hidden});
      put("attn_sinks.weight", "self_attn.sinks", {heads});
      put("ffn_gate_inp.bias", "mlp.router.bias", {experts});
      put("ffn_gate_exps.bias", "mlp.experts.gate_proj_bias", {expert_ff, experts});
      put("ffn_up_exps.bias", "mlp.experts.up_proj_bias", {expert_ff, experts});
      put("ffn_down_exps.bias", "mlp.experts.down_proj_bias", {hidden, experts});
    }
    if (experts > 0 && i >= get("first_k_dense_replace", 0)) {
      put("ffn_gate_inp.weight",
          type == "mixtral" ? "block_sparse_moe.gate.weight"
                            : (is_oss ? "mlp.router.weight" : "mlp.gate.weight"),
          {hidden, experts});
      put("ffn_gate_exps.weight", "mlp.experts.gate_proj", {hidden, expert_ff, experts});
      put("ffn_up_exps.weight", "mlp.experts.up_proj", {hidden, expert_ff, experts});
      put("ffn_down_exps.weight", "mlp.experts.down_proj", {expert_ff, hidden, experts});
      if (const std::uint64_t shared = get("n_shared_experts", 0) * expert_ff; shared > 0) {
        put("ffn_gate_shexp.weight", "mlp.shared_experts.gate_proj.weight", {hidden, shared});
        put("ffn_up_shexp.weight", "mlp.shared_experts.up_proj.weight", {hidden, shared});
        put("ffn_down_shexp.weight", "mlp.shared_experts.down_proj.weight", {shared, hidden});
      }
    } else {
      put("ffn_gate.weight", "mlp.gate_proj.weight", {hidden, ff});
      put("ffn_up.weight", "mlp.up_proj.weight", {hidden, ff});
      put("ffn_down.weight", "mlp.down_proj.weight", {ff, hidden});
    }
  }
  return tensors;
}

// Bytes of a GGUF header, piece by piece.
class GgufWriter {
 public:
  static constexpr std::uint32_t kF32 = 0;
  static constexpr std::uint32_t kQ8 = 8;
  static constexpr std::uint32_t kQ4K = 12;
  static constexpr std::uint32_t kQ6K = 14;
  static constexpr std::uint32_t kBf16 = 30;

  GgufWriter& number(const std::string& key, std::uint32_t value) {
    begin(key, 4);
    put(value, 4);
    return *this;
  }
  GgufWriter& text(const std::string& key, const std::string& value) {
    begin(key, 8);
    string(value);
    return *this;
  }
  GgufWriter& texts(const std::string& key, std::uint64_t count) {
    begin(key, 9);
    put(8, 4);
    put(count, 8);
    for (std::uint64_t i = 0; i < count; ++i) {
      string("token" + std::to_string(i));
    }
    return *this;
  }
  GgufWriter& flags(const std::string& key, const std::vector<bool>& values) {
    begin(key, 9);
    put(7, 4);
    put(values.size(), 8);
    for (const bool value : values) {
      put(value ? 1 : 0, 1);
    }
    return *this;
  }
  GgufWriter& tensor(const MadeTensor& made, std::uint32_t type) {
    std::swap(bytes_, tensors_);
    string(made.gguf_name);
    put(made.shape.size(), 4);
    for (const std::uint64_t size : made.shape) {
      put(size, 8);
    }
    put(type, 4);
    put(0, 8);
    std::swap(bytes_, tensors_);
    ++num_tensors_;
    return *this;
  }

  std::string bytes() const {
    GgufWriter front;
    front.bytes_ = "GGUF";
    front.put(3, 4);
    front.put(num_tensors_, 8);
    front.put(num_pairs_, 8);
    return front.bytes_ + bytes_ + tensors_;
  }

  void put(std::uint64_t value, int size) {
    for (int i = 0; i < size; ++i) {
      bytes_ += static_cast<char>(value >> (8 * i) & 0xff);
    }
  }

 private:
  void string(const std::string& text) {
    put(text.size(), 8);
    bytes_ += text;
  }
  void begin(const std::string& key, std::uint32_t type) {
    string(key);
    put(type, 4);
    ++num_pairs_;
  }

  std::string bytes_;
  std::string tensors_;
  std::uint64_t num_pairs_ = 0;
  std::uint64_t num_tensors_ = 0;
};

// Bytes of a .safetensors file without its weights.
inline std::string made_safetensors(const std::vector<MadeTensor>& tensors) {
  Json header = {{"__metadata__", {{"format", "pt"}}}};
  std::uint64_t offset = 0;
  for (const MadeTensor& tensor : tensors) {
    std::uint64_t elements = 1;
    Json shape = Json::array();
    for (auto size = tensor.shape.rbegin(); size != tensor.shape.rend(); ++size) {
      elements *= *size;
      shape.push_back(*size);
    }
    header[tensor.hf_name] = {
        {"dtype", "BF16"}, {"shape", shape}, {"data_offsets", {offset, offset + 2 * elements}}};
    offset += 2 * elements;
  }
  const std::string text = header.dump();
  std::string bytes;
  for (int i = 0; i < 8; ++i) {
    bytes += static_cast<char>(text.size() >> (8 * i) & 0xff);
  }
  return bytes + text;
}

}  // namespace gpuwhy
