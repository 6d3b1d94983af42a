// SPDX-License-Identifier: Apache-2.0
//
// Stored sizes of a model's parts, from the tensor directory of its checkpoint.
//
// A configuration says how a model was designed, the directory what was stored: which layers a
// quantizer left wide, how wide its scales are. Tensor names are matched by words, first match
// wins, like kernel names. Two spellings are covered, that of transformers and that of llama.cpp. A
// name that matches nothing is counted with the norms, which moves bytes between parts but loses
// none.
#include "model/stored_bytes.h"

#include <array>
#include <charconv>

#include <fmt/format.h>

namespace gpuwhy {
namespace {

struct NameRule {
  std::string_view word;
  LlmPart part;
};

// First match wins: special rules before general ones.
constexpr NameRule kRules[] = {
    {"merger.", LlmPart::kProjector},
    {"projector", LlmPart::kProjector},
    {"mm_", LlmPart::kProjector},
    {"mm.", LlmPart::kProjector},
    {"visual.", LlmPart::kVision},
    {"vision_", LlmPart::kVision},
    {"sam_model.", LlmPart::kVision},
    {"image_newline", LlmPart::kVision},
    {"view_sep", LlmPart::kVision},
    {"v.blk.", LlmPart::kVision},
    {"token_embd_norm", LlmPart::kNorms},
    {"embed_tokens", LlmPart::kEmbedding},
    {"token_embd", LlmPart::kEmbedding},
    {"position_embd", LlmPart::kEmbedding},
    {".wte.", LlmPart::kEmbedding},
    {".wpe.", LlmPart::kEmbedding},
    {"backbone.embeddings", LlmPart::kEmbedding},
    {"lm_head", LlmPart::kLmHead},
    {"indexer.k_norm", LlmPart::kNorms},
    {"indexer.", LlmPart::kIndexer},
    {"latent_proj", LlmPart::kShared},
    {"shared_mlp.", LlmPart::kShared},
    {"shared_expert", LlmPart::kShared},
    {"_shexp", LlmPart::kShared},
    {"ffn_gate_inp", LlmPart::kRouter},
    {"exp_probs_b", LlmPart::kRouter},
    {"e_score_correction_bias", LlmPart::kRouter},
    {".router.", LlmPart::kRouter},
    {".mlp.gate.", LlmPart::kRouter},
    {".mixer.gate.", LlmPart::kRouter},
    {"block_sparse_moe.gate.", LlmPart::kRouter},
    {".experts.", LlmPart::kExperts},
    {"block_sparse_moe.input_linear", LlmPart::kExperts},
    {"block_sparse_moe.output_linear", LlmPart::kExperts},
    {"_exps.", LlmPart::kExperts},
    {"norm", LlmPart::kNorms},
    {".bias", LlmPart::kNorms},
    {"sinks", LlmPart::kNorms},
    {".ln_", LlmPart::kNorms},
    {"mixer.up_proj", LlmPart::kMlp},
    {"mixer.down_proj", LlmPart::kMlp},
    {"out_proj", LlmPart::kOut},
    {"in_proj", LlmPart::kQkv},
    {"f_a_proj", LlmPart::kQkv},
    {"f_b_proj", LlmPart::kQkv},
    {"g_a_proj", LlmPart::kQkv},
    {"g_b_proj", LlmPart::kQkv},
    {"o_proj", LlmPart::kOut},
    {"attn_output", LlmPart::kOut},
    {"attn.c_proj", LlmPart::kOut},
    {"q_proj", LlmPart::kQkv},
    {"k_proj", LlmPart::kQkv},
    {"v_proj", LlmPart::kQkv},
    {"qkv", LlmPart::kQkv},
    {"q_a_proj", LlmPart::kQkv},
    {"q_b_proj", LlmPart::kQkv},
    {"kv_a_proj", LlmPart::kQkv},
    {"kv_b_proj", LlmPart::kQkv},
    {"attn_", LlmPart::kQkv},
    {"attn.c_attn", LlmPart::kQkv},
    {"ffn_", LlmPart::kMlp},
    {".mlp.", LlmPart::kMlp},
    {".feed_forward.", LlmPart::kMlp},
};

// The N of "model.layers.N." or "blk.N.".
std::optional<std::size_t> layer_of(std::string_view name) {
  for (const std::string_view before : {"layers.", "blk."}) {
    const std::size_t at = name.find(before);
    if (at == std::string_view::npos || (at > 0 && name[at - 1] != '.')) {
      continue;
    }
    const char* begin = name.data() + at + before.size();
    std::size_t layer = 0;
    const auto [end, failure] = std::from_chars(begin, name.data() + name.size(), layer);
    if (failure == std::errc() && end != begin) {
      return layer;
    }
  }
  return std::nullopt;
}

struct StoredSums {
  std::array<Count, kNumLlmParts> bytes{};
  std::array<bool, kNumLlmParts> is_seen{};
  Count elements;
  Count left_out;
  bool is_packed = false;
};

// Tensors of layers beyond the model's (multi-token prediction heads) are summed separately.
StoredSums sums_of(const std::vector<TensorRecord>& tensors, std::size_t num_layers) {
  StoredSums sums;
  for (const TensorRecord& tensor : tensors) {
    const auto part = part_of_tensor(tensor.name);
    if (!part) {
      continue;
    }
    if (tensor.name.starts_with("mtp.")) {  // predicts further tokens, with layers of its own
      sums.left_out += tensor.elements;
      continue;
    }
    const bool is_vision = *part == LlmPart::kVision || *part == LlmPart::kProjector;
    if (const auto layer = layer_of(tensor.name); layer && *layer >= num_layers && !is_vision) {
      sums.left_out += tensor.elements;
      continue;
    }
    const auto index = static_cast<std::size_t>(*part);
    sums.bytes[index] += tensor.bytes;
    sums.is_seen[index] = true;
    sums.elements += tensor.elements;
    sums.is_packed = sums.is_packed || tensor.is_packed;
  }
  return sums;
}

}  // namespace

// The part a tensor belongs to, by its name in the checkpoint. Buffers that are not weights have
// none; what matches no rule is small and counts as norms.
std::optional<LlmPart> part_of_tensor(std::string_view name) {
  if (name.find("rope_freqs") != std::string_view::npos ||
      name.find("rope_factors") != std::string_view::npos ||
      name.find("inv_freq") != std::string_view::npos) {
    return std::nullopt;
  }
  if (name == "output.weight") {  // GGUF's head
    return LlmPart::kLmHead;
  }
  if (name.starts_with("wte.") || name.starts_with("wpe.")) {
    return LlmPart::kEmbedding;
  }
  for (const NameRule& rule : kRules) {
    if (name.find(rule.word) != std::string_view::npos) {
      return rule.part;
    }
  }
  return LlmPart::kNorms;
}

void apply_tensors(const std::vector<TensorRecord>& tensors, Llm& llm) {
  const StoredSums sums = sums_of(tensors, llm.layers.size());
  // The files decide whether the embedding is tied, not the configuration: a head that is stored is
  // not shared.
  if (sums.is_seen[static_cast<std::size_t>(LlmPart::kEmbedding)]) {
    llm.is_tied = !sums.is_seen[static_cast<std::size_t>(LlmPart::kLmHead)];
  }
  const LlmParams params = params_of(llm);
  const std::int64_t expected =
      sums.is_seen[static_cast<std::size_t>(LlmPart::kVision)] ? params.total : params.text;
  // Bytes per weight of each part, as stored. This covers mixed quantization without knowing it.
  for (std::size_t i = 0; i < kNumLlmParts; ++i) {
    const std::int64_t elements = params.parts.counts[i].value();
    if (elements > 0 && sums.bytes[i].value() > 0) {
      llm.widths[i] = {elements, sums.bytes[i].value()};
    }
  }
  if (llm.is_tied) {
    llm.width(LlmPart::kLmHead) = llm.width(LlmPart::kEmbedding);
  }
  if (!sums.is_packed && sums.elements.value() != expected) {
    llm.notes.push_back(
        fmt::format("the checkpoint holds {} weights, its configuration describes {}: a shard is "
                    "missing, or the family has parts this program does not know",
                    sums.elements.value(), expected));
  }
  if (sums.left_out.value() > 0) {
    llm.notes.push_back(fmt::format("{} weights of layers beyond the model's {} are left out",
                                    sums.left_out.value(), llm.layers.size()));
  }
}

}  // namespace gpuwhy
