// SPDX-License-Identifier: Apache-2.0
//
// Minimum FLOPs and bytes of transformer inference, from the model's shape.
//
// Closed forms per part and per layer: a layer may be dense or a mixture, with full or windowed
// attention. Causal attention is counted as such (each token sees those before it), not as a full
// square, because the other half need not be computed. Layers are visited one by one instead of
// grouped: a model has about a hundred, and a loop is easier to verify than a grouping.
//
// Why not 2 x parameters x tokens: it is off by the embedding table, the context, and, for a
// mixture, by the idle experts, up to a factor of twenty.
//
// What it gets wrong: routing is assumed uniform; real routing is skewed and touches fewer experts
// at medium batch sizes (hence the range). Activations are ignored, which at a batch of 64 or more
// adds up to a fifth to the bytes of a real engine. Norms, softmax and rotary embedding count no
// FLOPs.
#include "model/llm.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "base/error.h"

namespace llmprof {
namespace {

// Weights of one layer, and the width of its keys and values.
struct LayerShape {
  Count qkv;
  Count out;
  Count norms;
  Count dense_mlp;
  Count router;
  Count router_bias;
  Count expert;  // of one
  Count expert_bias;
  Count shared;
  Count score_width;  // multiply-adds a query-key pair needs, all heads
  Count value_width;
  Count kv_elements;  // per token
};

void add_plain_attention(const Llm& llm, LayerShape& shape) {
  const Count projected = (Count(llm.heads) + Count(2) * llm.kv_heads) * llm.head_dim;
  const Count width = Count(llm.heads) * llm.head_dim;
  shape.qkv = Count(llm.hidden) * projected;
  shape.out = width * llm.hidden;
  shape.norms += llm.has_qkv_bias ? projected : Count(0);
  shape.norms += llm.has_qk_norm ? Count(2) * llm.head_dim : Count(0);
  shape.score_width = width;
  shape.value_width = width;
  shape.kv_elements = Count(2) * llm.kv_heads * llm.head_dim;
}

void add_latent_attention(const Llm& llm, const MlaShape& mla, bool is_absorbed,
                          LayerShape& shape) {
  const Count hidden = llm.hidden;
  const Count heads = llm.heads;
  const Count query_width = heads * (Count(mla.nope_dim) + mla.rope_dim);
  const Count query = mla.query_rank == 0
                          ? hidden * query_width
                          : hidden * mla.query_rank + Count(mla.query_rank) * query_width;
  shape.qkv = query + hidden * (Count(mla.kv_rank) + mla.rope_dim) +
              Count(mla.kv_rank) * heads * (Count(mla.nope_dim) + mla.value_dim);
  shape.out = heads * mla.value_dim * hidden;
  shape.norms += Count(mla.query_rank) + mla.kv_rank;
  shape.score_width = is_absorbed ? heads * (Count(mla.kv_rank) + mla.rope_dim) : query_width;
  shape.value_width = heads * (is_absorbed ? mla.kv_rank : mla.value_dim);
  shape.kv_elements = Count(mla.kv_rank) + mla.rope_dim;
}

// The MLA branch counts its compressed or expanded form, as the kernels of the phase would run it.
LayerShape layer_shape(const Llm& llm, bool is_mla_absorbed) {
  LayerShape shape;
  shape.norms = Count(llm.norms_per_layer) * llm.hidden * (llm.has_norm_bias ? 2 : 1);
  shape.norms += llm.has_out_bias ? llm.hidden : 0;
  shape.norms += llm.has_sinks ? llm.heads : 0;
  if (llm.mla) {
    add_latent_attention(llm, *llm.mla, is_mla_absorbed, shape);
  } else {
    add_plain_attention(llm, shape);
  }
  const Count matrices = llm.mlp_matrices;
  const auto bias_of = [&](Count ff) { return (matrices - 1) * ff + llm.hidden; };
  shape.dense_mlp = matrices * llm.hidden * llm.dense_ff;
  shape.norms += llm.has_mlp_bias ? bias_of(llm.dense_ff) : Count(0);
  if (llm.moe) {
    const MoeShape& moe = *llm.moe;
    shape.router = Count(llm.hidden) * moe.experts;
    shape.router_bias = moe.has_router_bias ? moe.experts : 0;
    shape.expert = matrices * llm.hidden * moe.expert_ff;
    shape.expert_bias = moe.has_expert_bias ? bias_of(moe.expert_ff) : Count(0);
    shape.shared = matrices * llm.hidden * moe.shared_ff + (moe.has_shared_gate ? llm.hidden : 0);
  }
  return shape;
}

// Σ min(p, window) for p = 1..tokens
Count windowed_sum(Count tokens, Count window) {
  const std::int64_t inside = std::min(tokens.value(), window.value());
  const Count triangle = ((Count(inside) * (Count(inside) + 1)).value()) / 2;
  return triangle + (tokens - inside) * window;
}

// Σ ((p - 1) mod chunk) + 1 for p = 1..tokens
Count chunked_sum(Count tokens, Count chunk) {
  const std::int64_t whole = tokens.value() / chunk.value();
  const Count rest = tokens.value() % chunk.value();
  return Count(whole) * ((chunk * (chunk + 1)).value() / 2) + (rest * (rest + 1)).value() / 2;
}

Count sum_to(const LlmLayer& layer, Count tokens) {
  switch (layer.reach) {
    case Reach::kFull:
      return windowed_sum(tokens, tokens);
    case Reach::kWindow:
      return windowed_sum(tokens, layer.reach_tokens);
    case Reach::kChunk:
      return chunked_sum(tokens, layer.reach_tokens);
  }
  return 0;
}

// Cached tokens visible to the first new token.
Count visible_cache(const LlmLayer& layer, std::int64_t cached) {
  switch (layer.reach) {
    case Reach::kFull:
      return cached;
    case Reach::kWindow:
      return std::min(cached, layer.reach_tokens - 1);
    case Reach::kChunk:
      return cached % layer.reach_tokens;
  }
  return 0;
}

void check(const LlmWork& work) {
  if (work.batch < 1 || work.new_tokens < 1 || work.cached_tokens < 0) {
    throw Error(ErrorKind::kUsage, "a cost needs at least one sequence and one token");
  }
}

// What all parts of a cost are computed from, over all sequences.
struct Pass {
  Count repeats = 1;     // forward passes of equal size: each reads the weights
  Count tokens;          // of one of them
  Count logits;          // of all of them
  Count score_elements;  // multiply-adds of queries times keys, all layers
  Count value_elements;  // of weights times values
  Count kv_read_tokens;  // all layers
};

Count count_layers(const Llm& llm) {
  return static_cast<std::int64_t>(llm.layers.size());
}

Count count_moe_layers(const Llm& llm) {
  return std::count_if(llm.layers.begin(), llm.layers.end(),
                       [](const LlmLayer& layer) { return layer.is_moe; });
}

Pass pass_of(const Llm& llm, const LlmWork& work, const LayerShape& shape) {
  const Count new_tokens = work.new_tokens;
  const Count batch = work.batch;
  const bool is_decode = work.kind == LlmWork::Kind::kDecode;
  Count pairs;
  Count kv_read;
  for (const LlmLayer& layer : llm.layers) {
    const Count exact = attention_pairs(layer, new_tokens, work.cached_tokens);
    const bool is_square = work.is_full_square && !is_decode;
    pairs += is_square ? new_tokens * (new_tokens + work.cached_tokens) : exact;
    // A decode kernel reads what it attends to; in prefill the new tokens stay on the chip.
    kv_read += is_decode ? exact : visible_cache(layer, work.cached_tokens);
  }
  Pass pass;
  pass.repeats = is_decode ? new_tokens : 1;
  pass.tokens = is_decode ? batch : batch * new_tokens;
  pass.logits = is_decode || work.has_all_logits ? batch * new_tokens : batch;
  pass.score_elements = batch * pairs * shape.score_width;
  pass.value_elements = batch * pairs * shape.value_width;
  pass.kv_read_tokens = batch * kv_read;
  return pass;
}

PartCounts flops_of(const Llm& llm, const LayerShape& shape, const Pass& pass) {
  const Count twice = Count(2) * pass.repeats * pass.tokens;
  const Count num_layers = count_layers(llm);
  const Count num_moe = count_moe_layers(llm);
  PartCounts flops;
  flops[LlmPart::kQkv] = twice * num_layers * shape.qkv;
  flops[LlmPart::kOut] = twice * num_layers * shape.out;
  flops[LlmPart::kScores] = Count(2) * pass.score_elements;
  flops[LlmPart::kValues] = Count(2) * pass.value_elements;
  flops[LlmPart::kMlp] = twice * (num_layers - num_moe) * shape.dense_mlp;
  flops[LlmPart::kLmHead] = Count(2) * pass.logits * llm.hidden * llm.vocab;
  if (llm.moe) {
    flops[LlmPart::kRouter] = twice * num_moe * shape.router;
    flops[LlmPart::kExperts] = twice * num_moe * llm.moe->experts_per_token * shape.expert;
    flops[LlmPart::kShared] = twice * num_moe * shape.shared;
  }
  return flops;
}

void add_expert_bytes(const Llm& llm, const LayerShape& shape, Count num_moe, Count passes,
                      Count tokens, LlmCost& cost) {
  const MoeShape& moe = *llm.moe;
  const StoredWidth& width = llm.width(LlmPart::kExperts);
  const Count expert = num_moe * (shape.expert + shape.expert_bias);
  const std::int64_t most = std::min((tokens * moe.experts_per_token).value(), moe.experts);
  const long double expected =
      width.bytes_of(static_cast<long double>(expert.value()) *
                     expected_experts(moe.experts, moe.experts_per_token, tokens.value()));
  if (expected >= 9e18L) {
    throw Error(ErrorKind::kInput, "the experts take more bytes than 63 bits hold");
  }
  cost.weight_bytes[LlmPart::kExperts] = passes * static_cast<std::int64_t>(std::rint(expected));
  cost.expert_bytes_least = passes * width.bytes_of((expert * moe.experts_per_token).value());
  cost.expert_bytes_most = passes * width.bytes_of((expert * most).value());
}

void add_bytes(const Llm& llm, const LayerShape& shape, const Pass& pass, LlmCost& cost) {
  const Count num_layers = count_layers(llm);
  const Count num_moe = count_moe_layers(llm);
  const auto read = [&](LlmPart part, Count elements) {
    cost.weight_bytes[part] = pass.repeats * llm.width(part).bytes_of(elements.value());
  };
  read(LlmPart::kEmbedding, pass.tokens * llm.hidden * (llm.positions > 0 ? 2 : 1));
  read(LlmPart::kQkv, num_layers * shape.qkv);
  read(LlmPart::kOut, num_layers * shape.out);
  read(LlmPart::kMlp, (num_layers - num_moe) * shape.dense_mlp);
  read(LlmPart::kNorms, num_layers * shape.norms + Count(llm.hidden) * (llm.has_norm_bias ? 2 : 1));
  read(LlmPart::kLmHead, Count(llm.hidden) * llm.vocab);
  if (llm.moe) {
    read(LlmPart::kRouter, num_moe * (shape.router + shape.router_bias));
    read(LlmPart::kShared, num_moe * shape.shared);
    add_expert_bytes(llm, shape, num_moe, pass.repeats, pass.tokens, cost);
  }
  const Count written = pass.repeats * pass.tokens * num_layers;
  cost.kv_read_bytes = llm.kv_width.bytes_of((pass.kv_read_tokens * shape.kv_elements).value());
  cost.kv_write_bytes = llm.kv_width.bytes_of((written * shape.kv_elements).value());
}

LlmCost cost_of(const Llm& llm, const LayerShape& shape, const Pass& pass) {
  LlmCost cost;
  cost.flops = flops_of(llm, shape, pass);
  add_bytes(llm, shape, pass, cost);
  return cost;
}

// Sums of one phase, all there.
struct PhaseSums {
  std::int64_t requests;
  Count queries;
  Count keys;
  Count squared;   // Σ q²
  Count products;  // Σ q·k
};

PhaseSums sums_of(const PhaseCounts& phase) {
  if (!phase.is_complete()) {
    throw Error(ErrorKind::kUsage, "the cost of a step needs the sums of its requests");
  }
  return {phase.requests, *phase.queries, *phase.keys, *phase.queries_squared,
          *phase.queries_times_keys};
}

// Whether a layer reaches over all keys of every request of a phase, as far as sums can tell.
bool reaches_all(const LlmLayer& layer, const PhaseSums& phase) {
  return layer.reach == Reach::kFull || phase.keys.value() <= layer.reach_tokens;
}

// Query-key pairs of a phase in one layer. The i-th of q new tokens attends to k - q + i keys,
// which sums to q·k - q(q - 1)/2. A shorter reach is exact for one request; of several only the
// sums are known, and then it is the most that they allow.
Count pairs_of(const LlmLayer& layer, const PhaseSums& phase) {
  const Count full = phase.products - (phase.squared - phase.queries).value() / 2;
  if (reaches_all(layer, phase)) {
    return full;
  }
  if (phase.requests == 1) {
    return attention_pairs(layer, phase.queries, phase.keys - phase.queries);
  }
  return std::min(full.value(), (phase.queries * layer.reach_tokens).value());
}

// Keys and values read by a phase in one layer, in tokens: what lies before the new tokens of a
// prompt, and in generation the new ones, too, as a decode kernel does.
Count kv_read_of(const LlmLayer& layer, const PhaseSums& phase, bool is_context) {
  const Count cached = phase.keys - phase.queries;
  const Count added = is_context ? Count(0) : phase.queries;
  if (reaches_all(layer, phase)) {
    return cached + added;
  }
  if (phase.requests == 1) {
    return visible_cache(layer, cached.value()) + added;
  }
  return std::min(cached.value(), (Count(phase.requests) * (layer.reach_tokens - 1)).value()) +
         added;
}

std::int64_t divided(std::int64_t size, std::int64_t num_gpus, const char* what) {
  if (size % num_gpus != 0) {
    throw Error(ErrorKind::kUsage,
                fmt::format("{} {} do not divide among {} GPUs", size, what, num_gpus));
  }
  return size / num_gpus;
}

}  // namespace

const std::array<const char*, kNumLlmParts> kLlmPartNames = {
    "embedding", "qkv",    "scores", "values",  "o",      "mlp",      "router",
    "experts",   "shared", "norms",  "lm_head", "vision", "projector"};

std::int64_t PartCounts::sum() const {
  Count sum;
  for (const Count count : counts) {
    sum += count;
  }
  return sum.value();
}

std::int64_t LlmCost::total_bytes() const {
  return (Count(weight_bytes.sum()) + kv_read_bytes + kv_write_bytes).value();
}

std::int64_t LlmCost::least_bytes() const {
  return (Count(total_bytes()) - weight_bytes[LlmPart::kExperts] + expert_bytes_least).value();
}

std::int64_t LlmCost::most_bytes() const {
  return (Count(total_bytes()) - weight_bytes[LlmPart::kExperts] + expert_bytes_most).value();
}

void LlmCost::add(const LlmCost& other) {
  for (std::size_t i = 0; i < kNumLlmParts; ++i) {
    flops.counts[i] += other.flops.counts[i];
    weight_bytes.counts[i] += other.weight_bytes.counts[i];
  }
  kv_read_bytes += other.kv_read_bytes;
  kv_write_bytes += other.kv_write_bytes;
  expert_bytes_least += other.expert_bytes_least;
  expert_bytes_most += other.expert_bytes_most;
}

Count attention_pairs(const LlmLayer& layer, Count new_tokens, Count cached_tokens) {
  return sum_to(layer, cached_tokens + new_tokens) - sum_to(layer, cached_tokens);
}

long double expected_experts(std::int64_t experts, std::int64_t per_token, std::int64_t tokens) {
  const long double missed =
      1.0L - static_cast<long double>(per_token) / static_cast<long double>(experts);
  return static_cast<long double>(experts) *
         (1.0L - std::pow(missed, static_cast<long double>(tokens)));
}

LlmWork prefill_work(std::int64_t tokens, std::int64_t batch, std::int64_t cached_tokens) {
  return {LlmWork::Kind::kPrefill, batch, tokens, cached_tokens};
}

LlmWork decode_work(std::int64_t context, std::int64_t batch) {
  return {LlmWork::Kind::kDecode, batch, 1, context - 1};
}

LlmCost cost_of(const Llm& llm, const LlmWork& work) {
  check(work);
  const LayerShape shape = layer_shape(llm, work.is_mla_absorbed);
  return cost_of(llm, shape, pass_of(llm, work, shape));
}

LlmCost cost_of(const Llm& llm, const StepCounts& counts, CostOf of) {
  const PhaseSums context = sums_of(counts.context);
  const PhaseSums generation = sums_of(counts.generation);
  const bool is_executed = of == CostOf::kExecuted;
  const LayerShape shape = layer_shape(llm, false);
  const LayerShape generation_shape = layer_shape(llm, is_executed);
  Pass pass;
  pass.tokens = context.queries + generation.queries;
  pass.logits = Count(context.requests) + generation.queries;
  for (const LlmLayer& layer : llm.layers) {
    const Count read = is_executed ? context.products : pairs_of(layer, context);
    const Count made = pairs_of(layer, generation);
    pass.score_elements += read * shape.score_width + made * generation_shape.score_width;
    pass.value_elements += read * shape.value_width + made * generation_shape.value_width;
    pass.kv_read_tokens += kv_read_of(layer, context, true) + kv_read_of(layer, generation, false);
  }
  return cost_of(llm, shape, pass);
}

bool is_exact(const Llm& llm, const StepCounts& counts) {
  const PhaseSums phases[] = {sums_of(counts.context), sums_of(counts.generation)};
  return std::all_of(llm.layers.begin(), llm.layers.end(), [&](const LlmLayer& layer) {
    return std::all_of(std::begin(phases), std::end(phases), [&](const PhaseSums& phase) {
      return phase.requests <= 1 || reaches_all(layer, phase);
    });
  });
}

std::int64_t kv_bytes_per_token(const Llm& llm) {
  const Count num_layers = count_layers(llm);
  return llm.kv_width.bytes_of((num_layers * layer_shape(llm, false).kv_elements).value());
}

LlmParams params_of(const Llm& llm) {
  const LayerShape shape = layer_shape(llm, false);
  const Count num_layers = count_layers(llm);
  const Count num_moe = count_moe_layers(llm);
  // A tied model stores the table once; the head then has no parameters of its own.
  const Count table = Count(llm.hidden) * llm.vocab;
  LlmParams params;
  PartCounts& parts = params.parts;
  parts[LlmPart::kEmbedding] = table + Count(llm.hidden) * llm.positions;
  parts[LlmPart::kQkv] = num_layers * shape.qkv;
  parts[LlmPart::kOut] = num_layers * shape.out;
  parts[LlmPart::kMlp] = (num_layers - num_moe) * shape.dense_mlp;
  parts[LlmPart::kNorms] =
      num_layers * shape.norms + Count(llm.hidden) * (llm.has_norm_bias ? 2 : 1);
  parts[LlmPart::kLmHead] = llm.is_tied ? Count(0) : table;
  Count idle = 0;
  // Idle experts are stored, but a token does not pass through them.
  if (llm.moe) {
    const Count expert = num_moe * (shape.expert + shape.expert_bias);
    parts[LlmPart::kRouter] = num_moe * (shape.router + shape.router_bias);
    parts[LlmPart::kExperts] = expert * llm.moe->experts;
    parts[LlmPart::kShared] = num_moe * shape.shared;
    idle = expert * (Count(llm.moe->experts) - llm.moe->experts_per_token);
  }
  params.text = parts.sum();
  params.active = (Count(params.text) - idle).value();
  // The embedding is a lookup, not a multiplication. A tied table is multiplied as the head.
  params.active_matmul =
      (Count(params.active) - (llm.is_tied ? Count(0) : parts[LlmPart::kEmbedding])).value();
  if (llm.vision) {
    const VisionParams vision = params_of(*llm.vision);
    parts[LlmPart::kVision] = vision.towers;
    parts[LlmPart::kProjector] = vision.projector;
  }
  params.total = parts.sum();
  return params;
}

Llm shard_of(const Llm& llm, std::int64_t num_gpus) {
  Llm shard = llm;
  if (num_gpus < 1) {
    throw Error(ErrorKind::kUsage, "tensor parallelism needs at least one GPU");
  }
  shard.heads = divided(llm.heads, num_gpus, "attention heads");
  // With fewer KV heads than GPUs, each GPU keeps a copy of one.
  shard.kv_heads = llm.kv_heads >= num_gpus ? divided(llm.kv_heads, num_gpus, "KV heads") : 1;
  shard.dense_ff = divided(llm.dense_ff, num_gpus, "columns of the MLP");
  shard.vocab = (llm.vocab + num_gpus - 1) / num_gpus;
  if (llm.moe) {
    shard.moe->expert_ff = divided(llm.moe->expert_ff, num_gpus, "columns of an expert");
    shard.moe->shared_ff = divided(llm.moe->shared_ff, num_gpus, "columns of the shared expert");
  }
  return shard;
}

}  // namespace llmprof
