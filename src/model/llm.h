// SPDX-License-Identifier: Apache-2.0
//
// Shape of a transformer, and the minimum cost of running it.
//
// FLOPs are those of matrix products, two per multiply-add. Bytes are the minimum traffic between
// memory and chip: every weight that a pass touches once, keys, values and states read and written,
// no activations. Both are exact integers; only the number of distinct experts is an expectation.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/json_fwd.h"
#include "model/count.h"
#include "model/dtype_width.h"
#include "model/state_space.h"
#include "model/step_counts.h"
#include "model/vision.h"

namespace gpuwhy {

// The parts to which cost is attributed.
enum class LlmPart : std::uint8_t {
  kEmbedding,  // the table of tokens (and of positions): rows are looked up, nothing is multiplied
  kQkv,        // projections into queries, keys, values, gates; all of MLA's down- and
               // up-projections; those into a state
  kScores,     // queries times keys
  kValues,     // weights times values
  kOut,        // output projection of attention, or of a state
  kMlp,        // of dense layers
  kRouter,
  kExperts,  // routed ones
  kShared,   // experts every token takes, and their gate
  kNorms,    // with biases of attention and attention sinks: weights that are read, not multiplied
  kLmHead,
  kVision,     // towers that look at images
  kProjector,  // from a tower's width to the model's
  kState,      // convolution and recurrence of layers that keep a state
  kIndexer,    // picks the tokens that sparse attention looks at
};
inline constexpr std::size_t kNumLlmParts = 15;
extern const std::array<const char*, kNumLlmParts> kLlmPartNames;

// One integer per part.
struct PartCounts {
  std::array<Count, kNumLlmParts> counts{};

  Count& operator[](LlmPart part) { return counts[static_cast<std::size_t>(part)]; }
  const Count& operator[](LlmPart part) const { return counts[static_cast<std::size_t>(part)]; }
  std::int64_t sum() const;
};

// The attention range of a layer.
enum class Reach : std::uint8_t {
  kFull,
  kWindow,  // the last `reach_tokens`, the token itself included
  kChunk,   // to the start of the token's chunk of `reach_tokens`
  kPicked,  // any `reach_tokens` of all, which an indexer picks
};

// What mixes the tokens of a layer.
enum class Mixer : std::uint8_t {
  kAttention,
  kState,
  kBoth,     // side by side, as in Falcon-H1
  kNothing,  // the layer is only an MLP, as in Nemotron-H
};

// One layer: what mixes its tokens, how far it attends, and whether it has experts.
struct LlmLayer {
  Reach reach = Reach::kFull;
  std::int64_t reach_tokens = 0;
  bool is_moe = false;
  Mixer mixer = Mixer::kAttention;
  bool has_feed_forward = true;     // an MLP, or experts
  bool has_indexer = false;         // of its own
  std::int64_t compressed_by = 0;   // DeepSeek-V4: besides, one entry for that many tokens each
  std::int64_t picked_entries = 0;  // the most of these; 0: all

  bool attends() const { return mixer == Mixer::kAttention || mixer == Mixer::kBoth; }
  bool keeps_state() const { return mixer == Mixer::kState || mixer == Mixer::kBoth; }
};

// Heads of a layer with plain attention.
struct HeadShape {
  std::int64_t heads = 0;
  std::int64_t kv_heads = 0;
  std::int64_t head_dim = 0;
  std::int64_t value_dim = 0;
  bool has_sinks = false;
};

// Sparse attention's indexer: scores every earlier token (or compressed entry) with small heads of
// its own, to find those that are attended to.
struct IndexerShape {
  std::int64_t heads = 0;
  std::int64_t head_dim = 0;
  std::int64_t query_rank = 0;  // width its queries are projected from
};

// DeepSeek-V4: one vector a token is key and value of all heads, the output projection is made of
// two, in groups, and several residual streams are mixed.
struct CompressedShape {
  std::int64_t query_rank = 0;
  std::int64_t out_groups = 0;
  std::int64_t out_rank = 0;  // of a group
  std::int64_t streams = 0;
};

// Multi-head latent attention: keys and values are kept as one compressed vector per token.
struct MlaShape {
  std::int64_t query_rank = 0;  // 0: queries are projected at once
  std::int64_t kv_rank = 0;
  std::int64_t nope_dim = 0;
  std::int64_t rope_dim = 0;
  std::int64_t value_dim = 0;
  bool has_out_gate = false;  // as wide as the output projection's input
};

// Mixture of experts: sizes of the routed and shared experts of one layer.
struct MoeShape {
  std::int64_t experts = 0;
  std::int64_t experts_per_token = 0;
  std::int64_t expert_ff = 0;
  std::int64_t shared_ff = 0;     // of all shared experts together
  std::int64_t latent_width = 0;  // routed experts work on a projection of that width; 0: on all
  bool has_latent_norm = false;
  bool has_shared_gate = false;
  bool has_router_bias = false;
  bool has_expert_bias = false;
};

// Everything that cost_of() needs to know about a model.
struct Llm {
  std::string family;  // the model_type it was read by
  std::int64_t hidden = 0;
  std::int64_t heads = 0;
  std::int64_t kv_heads = 0;
  std::int64_t head_dim = 0;
  std::int64_t value_dim = 0;  // 0: head_dim
  std::int64_t vocab = 0;
  std::int64_t positions = 0;  // rows of a learned position table
  std::int64_t dense_ff = 0;
  int mlp_matrices = 3;  // gate, up, down; 2 without a gate
  bool is_tied = false;  // the head is the embedding table
  bool has_qkv_bias = false;
  bool has_out_bias = false;
  bool has_mlp_bias = false;
  bool has_qk_norm = false;
  bool has_wide_qk_norm = false;  // over all heads together
  bool has_out_gate = false;      // queries come with a gate of their width
  bool has_sinks = false;
  int norms_per_layer = 2;
  bool has_norm_bias = false;
  std::optional<HeadShape> window_heads;  // of layers with a window, where they differ
  std::optional<MlaShape> mla;
  std::optional<CompressedShape> compressed;
  std::optional<IndexerShape> indexer;
  std::optional<StateShape> state;
  std::optional<MoeShape> moe;
  std::vector<LlmLayer> layers;
  std::int64_t mtp_layers = 0;  // predict further tokens; not among `layers`
  std::optional<VisionShape> vision;

  std::array<StoredWidth, kNumLlmParts> widths{};
  StoredWidth kv_width;
  StoredWidth index_key_width{128, 132};  // fp8 with a scale of 32 bits a head, as engines keep it
  std::string weight_dtype;               // as stored, in words: "bf16", "awq int4 g128"
  std::string matmul_dtype;        // what linear layers execute in: a key of GpuSpec::dense_tflops
  std::string attention_dtype;     // what scores, values and the head execute in
  std::vector<std::string> notes;  // sentences for the user: what was assumed
  // Why it has no cost: it has parts that no formula here covers. Then there is no shape, and every
  // function below throws kInput with this reason.
  std::string no_cost_reason;

  StoredWidth& width(LlmPart part) { return widths[static_cast<std::size_t>(part)]; }
  const StoredWidth& width(LlmPart part) const { return widths[static_cast<std::size_t>(part)]; }
};

// Reads a Hugging Face config.json. The language model may be nested; missing keys take the
// defaults of its model_type. Throws kInput, naming the key, if a size is missing or implausible.
// A model with parts that are not priced comes back with a no_cost_reason.
Llm llm_from_config(const Json& config);

// The share of one of `num_gpus` GPUs under tensor parallelism: heads, widths and vocabulary are
// divided; router, norms and MLA's compressed keys are replicated. Throws kUsage if the sizes do
// not divide.
Llm shard_of(const Llm& llm, std::int64_t num_gpus);

// Parameter counts, as model cards state them.
struct LlmParams {
  PartCounts parts;
  std::int64_t total = 0;
  std::int64_t text = 0;           // without vision and projector
  std::int64_t active = 0;         // of text: what one token uses, the embedding table included
  std::int64_t active_matmul = 0;  // the same without the table, unless it is the head too
  std::int64_t mtp = 0;            // of layers that predict further tokens: in no other sum
};
LlmParams params_of(const Llm& llm);

// A unit of work: `new_tokens` for each of `batch` sequences after `cached_tokens` each.
struct LlmWork {
  enum class Kind : std::uint8_t {
    kPrefill,  // all new tokens in one pass
    kDecode,   // one pass a new token, each with its logits
  };

  Kind kind = Kind::kPrefill;
  std::int64_t batch = 1;
  std::int64_t new_tokens = 1;
  std::int64_t cached_tokens = 0;
  bool has_all_logits = false;   // prefill: the head on every token, not on the last
  bool is_mla_absorbed = false;  // MLA on compressed vectors, as decode kernels do
  bool is_full_square = false;   // scores above the diagonal too, as an eager kernel computes them
};
LlmWork prefill_work(std::int64_t tokens, std::int64_t batch = 1, std::int64_t cached_tokens = 0);
// One step in which each sequence attends to `context` tokens, including the new one.
LlmWork decode_work(std::int64_t context, std::int64_t batch = 1);

// The minimum cost of a unit of work.
struct LlmCost {
  PartCounts flops;
  PartCounts weight_bytes;  // experts: the expectation under uniform routing
  Count kv_read_bytes;      // with the indexer's keys
  Count kv_write_bytes;
  Count state_read_bytes;
  Count state_write_bytes;
  Count expert_bytes_least;  // every token takes the same experts
  Count expert_bytes_most;   // no expert is shared before all are taken

  std::int64_t total_flops() const { return flops.sum(); }
  std::int64_t total_bytes() const;
  std::int64_t least_bytes() const;
  std::int64_t most_bytes() const;
  void add(const LlmCost& other);
};
// Throws kUsage if a count of `work` is not positive, kInput if the result overflows.
LlmCost cost_of(const Llm& llm, const LlmWork& work);

enum class CostOf : std::uint8_t {
  kModel,     // what the model needs
  kExecuted,  // what usual kernels compute: full squares of context, MLA compressed in generation
};
// The cost of one step from the sums over its requests, whatever is mixed in it. Logits: one a
// request in context, one a token in generation. Throws kUsage if a sum is missing, kInput if the
// result overflows.
LlmCost cost_of(const Llm& llm, const StepCounts& counts, CostOf of = CostOf::kModel);

// Whether that cost is exact. Not where layers attend to a window: which request exceeds it, sums
// do not tell. Then the cost is the most that they allow.
bool is_exact(const Llm& llm, const StepCounts& counts);

// Bytes of keys and values per token, over all layers.
std::int64_t kv_bytes_per_token(const Llm& llm);

// Bytes that one sequence keeps at a context length: keys and values, of layers with a window only
// the window's, and states.
struct SequenceBytes {
  Count kv;
  Count state;

  std::int64_t sum() const { return (kv + state).value(); }
};
SequenceBytes sequence_bytes(const Llm& llm, std::int64_t context);

// Query-key pairs of one sequence in one layer, exactly.
Count attention_pairs(const LlmLayer& layer, Count new_tokens, Count cached_tokens);

// Expected number of distinct experts in a layer if each of `tokens` draws `per_token` of `experts`
// uniformly, without repetition and independently.
long double expected_experts(std::int64_t experts, std::int64_t per_token, std::int64_t tokens);

}  // namespace gpuwhy
