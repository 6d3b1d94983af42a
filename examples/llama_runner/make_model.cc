// SPDX-License-Identifier: Apache-2.0
//
// Generator of small models that need no download: shapes of real families with random weights.
// They compute the same as a trained model of their shape, at the same speed, and output nonsense.
// The same preset gives the same file, byte for byte.
//
// Weights are uniform with the variance that keeps activations from growing or dying from layer to
// layer: with others, logits become infinite and every token the same.
#include "make_model.h"

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <stdexcept>
#include <string_view>
#include <vector>

#include <ggml.h>
#include <gguf.h>

namespace llama_runner {
namespace {

// In the words of GGUF; 0: has none.
struct ModelShape {
  const char* preset;
  const char* arch;
  ggml_type type;
  bool has_tokenizer;
  std::int64_t layers, embedding, heads, kv_heads, feed_forward, vocab;
  // A mixture.
  std::int64_t experts = 0, experts_used = 0, expert_feed_forward = 0;
  // Latent attention, a shared expert and dense layers before the mixture: deepseek2.
  std::int64_t dense_layers = 0, q_lora = 0, kv_lora = 0, key_nope = 0, key_rope = 0, value = 0;

  bool is_mla() const { return kv_lora > 0; }
  std::int64_t head() const { return embedding / heads; }
  // The architecture llama has one width for dense layers and for experts.
  bool has_expert_width() const { return std::string_view(arch) != "llama"; }
  std::int64_t expert_width() const {
    return has_expert_width() ? expert_feed_forward : feed_forward;
  }
};

constexpr ModelShape kShapes[] = {
    {"llama_tiny", "llama", GGML_TYPE_F16, true, 4, 512, 8, 4, 1408, 2048},
    {"llama_100m", "llama", GGML_TYPE_Q8_0, true, 12, 768, 12, 4, 2048, 32000},
    {"llama_100m_f16", "llama", GGML_TYPE_F16, true, 12, 768, 12, 4, 2048, 32000},
    {"moe_tiny", "llama", GGML_TYPE_Q8_0, false, 4, 512, 8, 4, 1024, 4096, 8, 2, 0},
    {"qwen3moe_tiny", "qwen3moe", GGML_TYPE_Q8_0, false, 4, 512, 8, 4, 1024, 8192, 16, 4, 512},
    {"mla_tiny", "deepseek2", GGML_TYPE_Q8_0, false, 4, 512, 8, 8, 2048, 8192, 8, 2, 1024, 1, 192,
     128, 64, 32, 64},
};

constexpr std::int64_t kContextLength = 4096;

const ModelShape& shape_of(const std::string& preset) {
  std::string known;
  for (const ModelShape& shape : kShapes) {
    if (preset == shape.preset) {
      return shape;
    }
    known += std::string(known.empty() ? "" : ", ") + shape.preset;
  }
  throw std::runtime_error("there is no preset '" + preset + "': " + known);
}

struct GgufFree {
  void operator()(gguf_context* context) const { gguf_free(context); }
};
struct GgmlFree {
  void operator()(ggml_context* context) const { ggml_free(context); }
};
struct FileClose {
  void operator()(std::FILE* file) const { std::fclose(file); }
};

// splitmix64, by Vigna; to (-1, 1).
class Random {
 public:
  float next() {
    state_ += 0x9E3779B97F4A7C15ULL;
    std::uint64_t z = state_;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ULL;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBULL;
    return static_cast<float>(static_cast<double>(z >> 11) * 0x1.0p-52 - 1.0);
  }

 private:
  std::uint64_t state_ = 0;
};

class ModelWriter {
 public:
  ModelWriter(const ModelShape& shape, bool has_tokenizer)
      : shape_(shape),
        gguf_(gguf_init_empty()),
        tensors_context_(ggml_init({std::size_t{8} << 20, nullptr, true})) {
    add_metadata();
    if (has_tokenizer) {
      add_tokenizer();
    } else {
      gguf_set_val_str(gguf_.get(), "tokenizer.ggml.model", "none");
      number("vocab_size", shape_.vocab);
    }
    add_tensors();
  }

  void write(const std::string& path) {
    if (!gguf_write_to_file(gguf_.get(), path.c_str(), /*only_meta=*/true)) {
      throw std::runtime_error("cannot write " + path);
    }
    const std::unique_ptr<std::FILE, FileClose> file(std::fopen(path.c_str(), "ab"));
    for (const ggml_tensor* tensor : tensors_) {
      if (!file || !write_weights(*tensor, file.get())) {
        throw std::runtime_error("cannot write " + path);
      }
    }
    if (std::fflush(file.get()) != 0) {
      throw std::runtime_error("cannot write " + path);
    }
  }

  std::int64_t num_params() const { return num_params_; }

 private:
  std::string key(const std::string& name) const { return std::string(shape_.arch) + "." + name; }
  void number(const std::string& name, std::int64_t value) {
    gguf_set_val_u32(gguf_.get(), key(name).c_str(), static_cast<std::uint32_t>(value));
  }

  void add_metadata() {
    gguf_set_val_str(gguf_.get(), "general.architecture", shape_.arch);
    gguf_set_val_str(gguf_.get(), "general.name", shape_.preset);
    number("context_length", kContextLength);
    number("embedding_length", shape_.embedding);
    number("block_count", shape_.layers);
    number("feed_forward_length", shape_.feed_forward);
    number("attention.head_count", shape_.heads);
    number("attention.head_count_kv", shape_.is_mla() ? 1 : shape_.kv_heads);
    gguf_set_val_f32(gguf_.get(), key("attention.layer_norm_rms_epsilon").c_str(), 1e-5F);
    if (shape_.experts > 0) {
      number("expert_count", shape_.experts);
      number("expert_used_count", shape_.experts_used);
      if (shape_.has_expert_width()) {
        number("expert_feed_forward_length", shape_.expert_feed_forward);
      }
    }
    if (shape_.is_mla()) {
      number("attention.q_lora_rank", shape_.q_lora);
      number("attention.kv_lora_rank", shape_.kv_lora);
      number("attention.key_length", shape_.kv_lora + shape_.key_rope);
      number("attention.value_length", shape_.kv_lora);
      number("attention.key_length_mla", shape_.key_nope + shape_.key_rope);
      number("attention.value_length_mla", shape_.value);
      number("rope.dimension_count", shape_.key_rope);
      number("leading_dense_block_count", shape_.dense_layers);
      number("expert_shared_count", 1);
    }
  }

  // SentencePiece's kind: three control tokens, every byte, then words.
  void add_tokenizer() {
    constexpr std::int32_t kNormal = 1, kUnknown = 2, kControl = 3, kByte = 6;  // llama.cpp's
    std::vector<std::string> words = {"<unk>", "<s>", "</s>"};
    std::vector<float> scores = {0, 0, 0};
    std::vector<std::int32_t> kinds = {kUnknown, kControl, kControl};
    for (int byte = 0; byte < 256; ++byte) {
      char text[8] = {};
      std::snprintf(text, sizeof(text), "<0x%02X>", byte);
      words.emplace_back(text);
      scores.push_back(0);
      kinds.push_back(kByte);
    }
    for (std::int64_t i = 0; static_cast<std::int64_t>(words.size()) < shape_.vocab; ++i) {
      std::string word = "\xe2\x96\x81";  // U+2581, a word's beginning
      for (std::int64_t rest = i; word.size() == 3 || rest > 0; rest /= 26) {
        word += static_cast<char>('a' + rest % 26);
      }
      words.push_back(word + std::string(i % 3 == 0 ? "" : "'"));
      scores.push_back(-static_cast<float>(i));
      kinds.push_back(kNormal);
    }
    std::vector<const char*> texts;
    texts.reserve(words.size());
    for (const std::string& word : words) {
      texts.push_back(word.c_str());
    }
    gguf_set_val_str(gguf_.get(), "tokenizer.ggml.model", "llama");
    gguf_set_arr_str(gguf_.get(), "tokenizer.ggml.tokens", texts.data(), texts.size());
    gguf_set_arr_data(gguf_.get(), "tokenizer.ggml.scores", GGUF_TYPE_FLOAT32, scores.data(),
                      scores.size());
    gguf_set_arr_data(gguf_.get(), "tokenizer.ggml.token_type", GGUF_TYPE_INT32, kinds.data(),
                      kinds.size());
    gguf_set_val_u32(gguf_.get(), "tokenizer.ggml.bos_token_id", 1);
    gguf_set_val_u32(gguf_.get(), "tokenizer.ggml.eos_token_id", 2);
  }

  void tensor(const std::string& name, const std::vector<std::int64_t>& dims) {
    // llama.cpp wants norms and routers in f32; a row of a quantised type holds whole blocks.
    const bool is_wide = dims.size() < 2 || name.find("ffn_gate_inp") != std::string::npos;
    ggml_type type = is_wide ? GGML_TYPE_F32 : shape_.type;
    if (dims[0] % ggml_blck_size(type) != 0) {
      type = GGML_TYPE_F16;
    }
    ggml_tensor* made =
        ggml_new_tensor(tensors_context_.get(), type, static_cast<int>(dims.size()), dims.data());
    ggml_set_name(made, name.c_str());
    gguf_add_tensor(gguf_.get(), made);
    tensors_.push_back(made);
    num_params_ += ggml_nelements(made);
  }

  void add_tensors() {
    const std::int64_t d = shape_.embedding;
    tensor("token_embd.weight", {d, shape_.vocab});  // the head is the same table
    tensor("output_norm.weight", {d});
    for (std::int64_t layer = 0; layer < shape_.layers; ++layer) {
      const std::string block = "blk." + std::to_string(layer) + ".";
      tensor(block + "attn_norm.weight", {d});
      tensor(block + "ffn_norm.weight", {d});
      if (shape_.is_mla()) {
        add_latent_attention(block);
      } else {
        add_attention(block);
      }
      if (shape_.experts == 0 || layer < shape_.dense_layers) {
        add_feed_forward(block, "", shape_.feed_forward);
      } else {
        add_mixture(block);
      }
    }
  }

  void add_attention(const std::string& block) {
    const std::int64_t d = shape_.embedding;
    tensor(block + "attn_q.weight", {d, shape_.heads * shape_.head()});
    tensor(block + "attn_k.weight", {d, shape_.kv_heads * shape_.head()});
    tensor(block + "attn_v.weight", {d, shape_.kv_heads * shape_.head()});
    tensor(block + "attn_output.weight", {shape_.heads * shape_.head(), d});
    if (std::string_view(shape_.arch) == "qwen3moe") {
      tensor(block + "attn_q_norm.weight", {shape_.head()});
      tensor(block + "attn_k_norm.weight", {shape_.head()});
    }
  }

  void add_latent_attention(const std::string& block) {
    const std::int64_t d = shape_.embedding;
    const std::int64_t key = shape_.key_nope + shape_.key_rope;
    tensor(block + "attn_q_a_norm.weight", {shape_.q_lora});
    tensor(block + "attn_kv_a_norm.weight", {shape_.kv_lora});
    tensor(block + "attn_q_a.weight", {d, shape_.q_lora});
    tensor(block + "attn_q_b.weight", {shape_.q_lora, shape_.heads * key});
    tensor(block + "attn_kv_a_mqa.weight", {d, shape_.kv_lora + shape_.key_rope});
    tensor(block + "attn_k_b.weight", {shape_.key_nope, shape_.kv_lora, shape_.heads});
    tensor(block + "attn_v_b.weight", {shape_.kv_lora, shape_.value, shape_.heads});
    tensor(block + "attn_output.weight", {shape_.heads * shape_.value, d});
  }

  void add_feed_forward(const std::string& block, const std::string& kind, std::int64_t width) {
    const std::int64_t d = shape_.embedding;
    tensor(block + "ffn_gate" + kind + ".weight", {d, width});
    tensor(block + "ffn_up" + kind + ".weight", {d, width});
    tensor(block + "ffn_down" + kind + ".weight", {width, d});
  }

  void add_mixture(const std::string& block) {
    const std::int64_t d = shape_.embedding;
    const std::int64_t width = shape_.expert_width();
    tensor(block + "ffn_gate_inp.weight", {d, shape_.experts});
    tensor(block + "ffn_gate_exps.weight", {d, width, shape_.experts});
    tensor(block + "ffn_up_exps.weight", {d, width, shape_.experts});
    tensor(block + "ffn_down_exps.weight", {width, d, shape_.experts});
    if (shape_.is_mla()) {
      add_feed_forward(block, "_shexp", width);
    }
  }

  // Each tensor's data, padded as the header says.
  bool write_weights(const ggml_tensor& tensor, std::FILE* file) {
    const auto count = static_cast<std::size_t>(ggml_nelements(&tensor));
    const std::size_t size = ggml_nbytes(&tensor);
    const bool is_norm = std::string_view(tensor.name).find("norm") != std::string_view::npos;
    const float scale = std::sqrt(3.0F / static_cast<float>(tensor.ne[0]));
    std::vector<float> values(count, 1.0F);
    for (std::size_t i = 0; !is_norm && i < count; ++i) {
      values[i] = scale * random_.next();
    }
    const std::size_t alignment = gguf_get_alignment(gguf_.get());
    std::vector<std::uint8_t> bytes((size + alignment - 1) / alignment * alignment);
    ggml_quantize_chunk(tensor.type, values.data(), bytes.data(), 0, ggml_nrows(&tensor),
                        tensor.ne[0], nullptr);
    return std::fwrite(bytes.data(), 1, bytes.size(), file) == bytes.size();
  }

  const ModelShape& shape_;
  std::unique_ptr<gguf_context, GgufFree> gguf_;
  std::unique_ptr<ggml_context, GgmlFree> tensors_context_;
  std::vector<const ggml_tensor*> tensors_;  // in the order of the file
  std::int64_t num_params_ = 0;
  Random random_;
};

}  // namespace

std::string make_model(const std::string& preset, const std::string& path,
                       const std::string& tokenizer) {
  const ModelShape& shape = shape_of(preset);
  if (!tokenizer.empty() && tokenizer != "none" && tokenizer != "spm") {
    throw std::runtime_error("--tokenizer is none or spm, not '" + tokenizer + "'");
  }
  const std::filesystem::path target(path);
  if (target.has_parent_path()) {
    std::filesystem::create_directories(target.parent_path());
  }
  ModelWriter writer(shape, tokenizer.empty() ? shape.has_tokenizer : tokenizer == "spm");
  const std::string part = path + ".part";
  writer.write(part);
  std::filesystem::rename(part, target);
  return path + ": " + shape.arch + ", " + std::to_string(writer.num_params()) + " parameters, " +
         ggml_type_name(shape.type);
}

}  // namespace llama_runner
