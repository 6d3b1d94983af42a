// SPDX-License-Identifier: Apache-2.0
//
// Translation of GGUF metadata to config.json keys, so that one reader knows all model shapes.
//
// Keys are from constants.py of llama.cpp's gguf-py. Files from before llama.cpp's change of MLA
// have key_length and value_length where newer ones have …_mla next to compressed lengths; both are
// read. "llama" also stands for Mistral and Mixtral; a window or experts tell them apart.
#include <algorithm>

#include <fmt/format.h>

#include "base/error.h"
#include "base/json.h"
#include "base/text.h"
#include "model/gguf.h"

namespace gpuwhy {
namespace {

struct ArchitectureName {
  const char* gguf;
  const char* model_type;
};

constexpr ArchitectureName kArchitectures[] = {
    {"llama", "llama"},
    {"mistral3", "llama"},
    {"qwen2", "qwen2"},
    {"qwen2vl", "qwen2_vl"},
    {"qwen2moe", "qwen2_moe"},
    {"qwen3", "qwen3"},
    {"qwen3moe", "qwen3_moe"},
    {"gemma", "gemma"},
    {"gemma2", "gemma2"},
    {"gemma3", "gemma3_text"},
    {"deepseek2", "deepseek_v2"},
    {"deepseek2-ocr", "deepseek_v2"},
    {"gpt-oss", "gpt_oss"},
    {"gptoss", "gpt_oss"},
    {"phi3", "phi3"},
    {"llama4", "llama4_text"},
    {"gpt2", "gpt2"},
    {"starcoder", "gpt_bigcode"},
};

// A GGUF key without its architecture prefix, and the config.json key of the same meaning.
struct KeyName {
  const char* gguf;
  const char* config;
};

constexpr KeyName kKeys[] = {
    {"embedding_length", "hidden_size"},
    {"block_count", "num_hidden_layers"},
    {"feed_forward_length", "intermediate_size"},
    {"attention.head_count", "num_attention_heads"},
    {"attention.head_count_kv", "num_key_value_heads"},
    {"attention.key_length", "head_dim"},
    {"attention.sliding_window", "sliding_window"},
    {"attention.chunk_size", "attention_chunk_size"},
    {"context_length", "n_positions"},
    {"vocab_size", "vocab_size"},
    {"expert_count", "num_experts"},
    {"expert_used_count", "num_experts_per_tok"},
    {"expert_feed_forward_length", "moe_intermediate_size"},
    {"expert_shared_count", "n_shared_experts"},
    {"expert_shared_feed_forward_length", "shared_expert_intermediate_size"},
    {"leading_dense_block_count", "first_k_dense_replace"},
    {"interleave_moe_layer_step", "interleave_moe_layer_step"},
};

class Translator {
 public:
  explicit Translator(const GgufHeader& header) : header_(header), metadata_(header.metadata) {
    const auto name = metadata_.find("general.architecture");
    if (name == metadata_.end() || !name->is_string()) {
      throw Error(ErrorKind::kInput, "the GGUF file does not name its architecture");
    }
    architecture_ = name->get<std::string>();
  }

  Json translate() {
    for (const KeyName& key : kKeys) {
      if (const Json* value = find(key.gguf)) {
        config_[key.config] = largest(*value);
      }
    }
    config_["model_type"] = model_type();
    set_vocabulary();
    set_windows();
    set_latent_attention();
    if (architecture_ == "llama4") {  // there, intermediate_size is the expert's
      config_["intermediate_size_mlp"] = config_["intermediate_size"];
      config_["intermediate_size"] = config_["moe_intermediate_size"];
    }
    return config_;
  }

 private:
  const Json* find(const std::string& key) const {
    const auto found = metadata_.find(architecture_ + "." + key);
    return found == metadata_.end() || found->is_null() ? nullptr : &*found;
  }

  bool has_tensor(std::string_view word) const {
    return std::ranges::any_of(header_.tensors, [&](const auto& tensor) {
      return tensor.name.find(word) != std::string::npos;
    });
  }

  // A list is per layer. Layers of different widths are treated as the widest; the tensor directory
  // has the real sizes.
  static Json largest(const Json& value) {
    if (!value.is_array() || value.empty()) {
      return value;
    }
    Json most = value[0];
    for (const Json& item : value) {
      most = item.is_number() && most.is_number() && item > most ? item : most;
    }
    return most;
  }

  std::string model_type() const {
    if (architecture_ == "llama" && config_.contains("num_experts")) {
      return "mixtral";
    }
    if (architecture_ == "llama" && config_.contains("sliding_window")) {
      return "mistral";
    }
    if (architecture_ == "deepseek2" && has_tensor("exp_probs_b")) {
      return "deepseek_v3";
    }
    for (const ArchitectureName& known : kArchitectures) {
      if (architecture_ == known.gguf) {
        return known.model_type;
      }
    }
    return architecture_;
  }

  // The embedding table is the best source, because tables are padded; then the tokenizer's list.
  void set_vocabulary() {
    const auto table = std::ranges::find_if(
        header_.tensors, [](const auto& t) { return t.name == "token_embd.weight"; });
    const Json hidden = config_.value("hidden_size", Json(nullptr));
    if (table != header_.tensors.end() && hidden.is_number_unsigned() && hidden > 0 &&
        hidden <= INT64_MAX && table->elements % hidden.get<std::int64_t>() == 0) {
      config_["vocab_size"] = table->elements / hidden.get<std::int64_t>();
      return;
    }
    const auto tokens = metadata_.find("tokenizer.ggml.tokens");
    if (!config_.contains("vocab_size") && tokens != metadata_.end() && tokens->is_object()) {
      config_["vocab_size"] = tokens->at("length");
    }
  }

  void set_windows() {
    const Json* pattern = find("attention.sliding_window_pattern");
    if (pattern != nullptr && pattern->is_array()) {
      Json types = Json::array();
      for (const Json& is_windowed : *pattern) {
        types.push_back(is_windowed == true ? "sliding_attention" : "full_attention");
      }
      config_["layer_types"] = types;
    } else if (pattern != nullptr) {
      config_["sliding_window_pattern"] = *pattern;
    }
    if (config_.contains("sliding_window") && config_["sliding_window"] == 0) {
      config_.erase("sliding_window");
    }
  }

  // DeepSeek's latent attention: derives the config.json dimensions from the two lengths of a key.
  void set_latent_attention() {
    if (architecture_ != "deepseek2" && architecture_ != "deepseek2-ocr") {
      return;
    }
    const Json* kv_rank = find("attention.kv_lora_rank");
    const Json* rotated = find("rope.dimension_count");
    config_["use_mla"] = kv_rank != nullptr && architecture_ == "deepseek2";
    config_["q_lora_rank"] =
        find("attention.q_lora_rank") == nullptr ? Json(nullptr) : *find("attention.q_lora_rank");
    if (config_["use_mla"] == false) {
      return;
    }
    const Json* keys = find("attention.key_length_mla");
    const Json* values = find("attention.value_length_mla");
    keys = keys == nullptr ? find("attention.key_length") : keys;
    values = values == nullptr ? find("attention.value_length") : values;
    if (keys == nullptr || values == nullptr || rotated == nullptr || !keys->is_number_unsigned() ||
        !rotated->is_number_unsigned() || *rotated > *keys) {
      throw Error(ErrorKind::kInput, "the GGUF file lacks the sizes of its latent attention");
    }
    config_["kv_lora_rank"] = *kv_rank;
    config_["qk_rope_head_dim"] = *rotated;
    config_["qk_nope_head_dim"] = keys->get<std::uint64_t>() - rotated->get<std::uint64_t>();
    config_["v_head_dim"] = *values;
    config_["num_key_value_heads"] = config_["num_attention_heads"];
    config_.erase("head_dim");
  }

  const GgufHeader& header_;
  const Json& metadata_;
  std::string architecture_;
  Json config_ = Json::object();
};

}  // namespace

Json config_from_gguf(const GgufHeader& header) {
  return Translator(header).translate();
}

}  // namespace gpuwhy
