// SPDX-License-Identifier: Apache-2.0
//
// Minimum FLOPs and bytes of transformer inference, from the model's shape.
//
// Closed forms per part and per layer. Causal attention is counted as such (each token sees those
// before it), not as a full square, because the other half need not be computed. Sparse attention
// counts the tokens it attends to, and its indexer every earlier one.
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
#include "model/model_shape.h"

namespace gpuwhy {
namespace {

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

// Σ floor(p / ratio) for p = 1..tokens: entries of `ratio` tokens that are complete
Count entries_sum(Count tokens, Count ratio) {
  const std::int64_t whole = tokens.value() / ratio.value();
  const Count rest = tokens.value() % ratio.value();
  return ratio * ((Count(whole) * (Count(whole) - 1)).value() / 2) + Count(whole) * (rest + 1);
}

// The same, with at most `most` of them each.
Count picked_sum(Count tokens, Count ratio, Count most) {
  const Count before = most * ratio - 1;  // tokens that see fewer
  return tokens.value() <= before.value() ? entries_sum(tokens, ratio)
                                          : entries_sum(before, ratio) + (tokens - before) * most;
}

// Compressed entries that a layer attends to, beside tokens.
Count entries_to(const LlmLayer& layer, Count tokens) {
  if (layer.compressed_by == 0) {
    return 0;
  }
  return layer.picked_entries == 0 ? entries_sum(tokens, layer.compressed_by)
                                   : picked_sum(tokens, layer.compressed_by, layer.picked_entries);
}

// Of these, what lies in the cache of some requests.
Count cached_entries(const LlmLayer& layer, std::int64_t cached, Count requests = 1) {
  if (layer.compressed_by == 0) {
    return 0;
  }
  const std::int64_t entries = cached / layer.compressed_by;
  return layer.picked_entries == 0 ? entries
                                   : std::min(entries, (requests * layer.picked_entries).value());
}

Count sum_to(const LlmLayer& layer, Count tokens) {
  switch (layer.reach) {
    case Reach::kFull:
      return windowed_sum(tokens, tokens);
    case Reach::kWindow:
    case Reach::kPicked:
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
    case Reach::kPicked:
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
  Count repeats = 1;        // forward passes of equal size: each reads the weights
  Count tokens;             // of one of them
  Count logits;             // of all of them
  Count score_elements;     // multiply-adds of queries times keys, all layers
  Count value_elements;     // of weights times values
  Count index_pairs;        // scored by indexers, all layers
  Count kv_read_elements;   // all layers
  Count index_read_tokens;  // of indexers' keys, all layers
  Count state_reads;        // sequences whose state is read, over all passes
  Count state_writes;
};

// Index keys of a layer that `tokens` tokens leave: one each, or one for a compressed entry.
Count index_keys(const LlmLayer& layer, Count tokens) {
  return layer.compressed_by == 0 ? tokens : Count(tokens.value() / layer.compressed_by);
}

// Pairs that a layer's indexer scores: every earlier token or entry.
Count index_pairs(const LlmLayer& layer, Count new_tokens, Count cached_tokens) {
  const Count ratio = std::max<std::int64_t>(layer.compressed_by, 1);
  return entries_sum(cached_tokens + new_tokens, ratio) - entries_sum(cached_tokens, ratio);
}

Pass pass_of(const Llm& llm, const LlmWork& work, const ModelShape& shape) {
  const Count new_tokens = work.new_tokens;
  const Count batch = work.batch;
  const bool is_decode = work.kind == LlmWork::Kind::kDecode;
  Pass pass;
  for (const LlmLayer& layer : llm.layers) {
    if (!layer.attends()) {
      continue;
    }
    const AttentionCosts& attention = shape.attention_of(layer);
    const Count exact = attention_pairs(layer, new_tokens, work.cached_tokens);
    const bool is_square = work.is_full_square && !is_decode && layer.reach != Reach::kPicked &&
                           layer.compressed_by == 0;
    const Count pairs = is_square ? new_tokens * (new_tokens + work.cached_tokens) : exact;
    // A decode kernel reads what it attends to; in prefill the new tokens stay on the chip.
    const Count cached =
        visible_cache(layer, work.cached_tokens) + cached_entries(layer, work.cached_tokens);
    pass.score_elements += batch * pairs * attention.score_width;
    pass.value_elements += batch * pairs * attention.value_width;
    pass.kv_read_elements += batch * (is_decode ? exact : cached) * attention.kv_elements;
    if (layer.has_indexer) {
      const Count scored = index_pairs(layer, new_tokens, work.cached_tokens);
      pass.index_pairs += batch * scored;
      pass.index_read_tokens +=
          batch * (is_decode ? scored : index_keys(layer, work.cached_tokens));
    }
  }
  pass.repeats = is_decode ? new_tokens : 1;
  pass.tokens = is_decode ? batch : batch * new_tokens;
  pass.logits = is_decode || work.has_all_logits ? batch * new_tokens : batch;
  // The first token of a prompt has no state before it.
  pass.state_reads = is_decode || work.cached_tokens > 0 ? pass.repeats * batch : Count(0);
  pass.state_writes = pass.repeats * batch;
  return pass;
}

PartCounts flops_of(const Llm& llm, const ModelShape& shape, const Pass& pass) {
  const Count twice = Count(2) * pass.repeats * pass.tokens;
  PartCounts flops;
  flops[LlmPart::kQkv] = twice * shape.qkv;
  flops[LlmPart::kOut] = twice * shape.out;
  flops[LlmPart::kScores] = Count(2) * pass.score_elements;
  flops[LlmPart::kValues] = Count(2) * pass.value_elements;
  flops[LlmPart::kMlp] = twice * shape.mlp;
  flops[LlmPart::kLmHead] = Count(2) * pass.logits * llm.hidden * llm.vocab;
  flops[LlmPart::kState] = twice * shape.num_state_layers * shape.state.steps;
  flops[LlmPart::kIndexer] =
      twice * shape.indexer + Count(2) * pass.index_pairs * shape.index_pair_width;
  if (llm.moe) {
    flops[LlmPart::kRouter] = twice * shape.router;
    flops[LlmPart::kExperts] = twice * llm.moe->experts_per_token * shape.expert;
    flops[LlmPart::kShared] = twice * shape.shared;
  }
  return flops;
}

void add_expert_bytes(const Llm& llm, const ModelShape& shape, Count passes, Count tokens,
                      LlmCost& cost) {
  const MoeShape& moe = *llm.moe;
  const StoredWidth& width = llm.width(LlmPart::kExperts);
  const Count expert = shape.expert + shape.expert_bias;
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

// Keys, values and index keys that `tokens` tokens leave in all layers.
Count written_bytes(const Llm& llm, const ModelShape& shape, Count tokens) {
  Count elements;
  Count keys;
  for (const LlmLayer& layer : llm.layers) {
    if (layer.attends()) {
      const Count entries = layer.compressed_by == 0 ? 0 : tokens.value() / layer.compressed_by;
      elements += (tokens + entries) * shape.attention_of(layer).kv_elements;
      keys += layer.has_indexer ? index_keys(layer, tokens) : Count(0);
    }
  }
  return Count(llm.kv_width.bytes_of(elements.value())) +
         llm.index_key_width.bytes_of((keys * shape.index_key_elements).value());
}

// Bytes of the states of one sequence, all layers.
Count state_bytes(const Llm& llm, const ModelShape& shape) {
  if (!llm.state) {
    return 0;
  }
  return shape.num_state_layers *
         (Count(llm.state->state_width.bytes_of(shape.state.state.value())) +
          llm.kv_width.bytes_of(shape.state.convolution.value()));
}

void add_bytes(const Llm& llm, const ModelShape& shape, const Pass& pass, LlmCost& cost) {
  const auto read = [&](LlmPart part, Count elements) {
    cost.weight_bytes[part] = pass.repeats * llm.width(part).bytes_of(elements.value());
  };
  read(LlmPart::kEmbedding, pass.tokens * llm.hidden * (llm.positions > 0 ? 2 : 1));
  read(LlmPart::kQkv, shape.qkv);
  read(LlmPart::kOut, shape.out);
  read(LlmPart::kMlp, shape.mlp);
  read(LlmPart::kNorms, shape.norms);
  read(LlmPart::kLmHead, Count(llm.hidden) * llm.vocab);
  read(LlmPart::kIndexer, shape.indexer);
  if (llm.moe) {
    read(LlmPart::kRouter, shape.router + shape.router_bias);
    read(LlmPart::kShared, shape.shared);
    add_expert_bytes(llm, shape, pass.repeats, pass.tokens, cost);
  }
  cost.kv_read_bytes =
      Count(llm.kv_width.bytes_of(pass.kv_read_elements.value())) +
      llm.index_key_width.bytes_of((pass.index_read_tokens * shape.index_key_elements).value());
  cost.kv_write_bytes = written_bytes(llm, shape, pass.repeats * pass.tokens);
  const Count state = state_bytes(llm, shape);
  cost.state_read_bytes = pass.state_reads * state;
  cost.state_write_bytes = pass.state_writes * state;
}

LlmCost cost_of(const Llm& llm, const ModelShape& shape, const Pass& pass) {
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

// The i-th of q new tokens attends to k - q + i keys, which sums to q·k - q(q - 1)/2.
Count full_pairs(const PhaseSums& phase) {
  return phase.products - (phase.squared - phase.queries).value() / 2;
}

// Compressed entries that the tokens of a phase attend to in one layer: exact for one request, else
// the most that the sums allow.
Count entry_pairs_of(const LlmLayer& layer, const PhaseSums& phase) {
  if (layer.compressed_by == 0) {
    return 0;
  }
  if (phase.requests == 1) {
    return entries_to(layer, phase.keys) - entries_to(layer, phase.keys - phase.queries);
  }
  const std::int64_t all = full_pairs(phase).value() / layer.compressed_by;
  return layer.picked_entries == 0 ? all
                                   : std::min(all, (phase.queries * layer.picked_entries).value());
}

// Query-key pairs of a phase in one layer. A shorter reach is exact for one request; of several
// only the sums are known, and then it is the most that they allow.
Count pairs_of(const LlmLayer& layer, const PhaseSums& phase) {
  const Count entries = entry_pairs_of(layer, phase);
  if (reaches_all(layer, phase)) {
    return full_pairs(phase) + entries;
  }
  if (phase.requests == 1) {
    return attention_pairs(layer, phase.queries, phase.keys - phase.queries);
  }
  return entries +
         std::min(full_pairs(phase).value(), (phase.queries * layer.reach_tokens).value());
}

// Keys and values read by a phase in one layer, in tokens: what lies before the new tokens of a
// prompt, and in generation the new ones, too, as a decode kernel does.
Count kv_read_of(const LlmLayer& layer, const PhaseSums& phase, bool is_context) {
  const Count cached = phase.keys - phase.queries;
  const Count added = (is_context ? Count(0) : phase.queries) +
                      cached_entries(layer, cached.value(), phase.requests);
  if (reaches_all(layer, phase)) {
    return cached + added;
  }
  if (phase.requests == 1) {
    return visible_cache(layer, cached.value()) + added;
  }
  return std::min(cached.value(), (Count(phase.requests) * (layer.reach_tokens - 1)).value()) +
         added;
}

// Adds what the indexer of a layer scores and reads in a phase.
void add_index_work(const LlmLayer& layer, const PhaseSums& phase, bool is_context, Pass& pass) {
  const std::int64_t ratio = std::max<std::int64_t>(layer.compressed_by, 1);
  pass.index_pairs += full_pairs(phase).value() / ratio;
  pass.index_read_tokens += index_keys(layer, is_context ? phase.keys - phase.queries : phase.keys);
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
    "embedding", "qkv",   "scores",  "values", "o",         "mlp",   "router", "experts",
    "shared",    "norms", "lm_head", "vision", "projector", "state", "indexer"};

std::int64_t PartCounts::sum() const {
  Count sum;
  for (const Count count : counts) {
    sum += count;
  }
  return sum.value();
}

std::int64_t LlmCost::total_bytes() const {
  return (Count(weight_bytes.sum()) + kv_read_bytes + kv_write_bytes + state_read_bytes +
          state_write_bytes)
      .value();
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
  state_read_bytes += other.state_read_bytes;
  state_write_bytes += other.state_write_bytes;
  expert_bytes_least += other.expert_bytes_least;
  expert_bytes_most += other.expert_bytes_most;
}

Count attention_pairs(const LlmLayer& layer, Count new_tokens, Count cached_tokens) {
  const Count all = cached_tokens + new_tokens;
  return sum_to(layer, all) - sum_to(layer, cached_tokens) + entries_to(layer, all) -
         entries_to(layer, cached_tokens);
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
  const ModelShape shape = shape_of(llm, work.is_mla_absorbed);
  return cost_of(llm, shape, pass_of(llm, work, shape));
}

LlmCost cost_of(const Llm& llm, const StepCounts& counts, CostOf of) {
  const PhaseSums context = sums_of(counts.context);
  const PhaseSums generation = sums_of(counts.generation);
  const bool is_executed = of == CostOf::kExecuted;
  const ModelShape shape = shape_of(llm, false);
  const ModelShape generation_shape = shape_of(llm, is_executed);
  Pass pass;
  pass.tokens = context.queries + generation.queries;
  pass.logits = Count(context.requests) + generation.queries;
  for (const LlmLayer& layer : llm.layers) {
    if (!layer.attends()) {
      continue;
    }
    const AttentionCosts& attention = shape.attention_of(layer);
    const AttentionCosts& made_by = generation_shape.attention_of(layer);
    const bool is_square = is_executed && layer.reach != Reach::kPicked && layer.compressed_by == 0;
    const Count read = is_square ? context.products : pairs_of(layer, context);
    const Count made = pairs_of(layer, generation);
    pass.score_elements += read * attention.score_width + made * made_by.score_width;
    pass.value_elements += read * attention.value_width + made * made_by.value_width;
    pass.kv_read_elements +=
        (kv_read_of(layer, context, true) + kv_read_of(layer, generation, false)) *
        attention.kv_elements;
    if (layer.has_indexer) {
      add_index_work(layer, context, true, pass);
      add_index_work(layer, generation, false, pass);
    }
  }
  const bool has_earlier = context.keys.value() > context.queries.value();
  pass.state_reads = Count(generation.requests) + (has_earlier ? context.requests : 0);
  pass.state_writes = Count(generation.requests) + context.requests;
  return cost_of(llm, shape, pass);
}

bool is_exact(const Llm& llm, const StepCounts& counts) {
  const PhaseSums phases[] = {sums_of(counts.context), sums_of(counts.generation)};
  return std::ranges::all_of(llm.layers, [&](const LlmLayer& layer) {
    return std::ranges::all_of(phases, [&](const PhaseSums& phase) {
      return phase.requests <= 1 || !layer.attends() ||
             (reaches_all(layer, phase) && layer.compressed_by == 0);
    });
  });
}

// What a token adds to the cache. A layer with compressed entries grows by a part of one.
std::int64_t kv_bytes_per_token(const Llm& llm) {
  const ModelShape shape = shape_of(llm, false);
  Count elements;
  Count bytes;
  for (const LlmLayer& layer : llm.layers) {
    const Count width = layer.attends() ? shape.attention_of(layer).kv_elements : Count(0);
    const std::int64_t ratio = std::max<std::int64_t>(layer.compressed_by, 1);
    elements += layer.compressed_by == 0 ? width : Count(0);
    bytes += layer.compressed_by == 0 ? 0 : llm.kv_width.bytes_of(width.value()) / ratio;
    bytes += layer.has_indexer
                 ? llm.index_key_width.bytes_of(shape.index_key_elements.value()) / ratio
                 : 0;
  }
  return (bytes + llm.kv_width.bytes_of(elements.value())).value();
}

SequenceBytes sequence_bytes(const Llm& llm, std::int64_t context) {
  if (context < 1) {
    throw Error(ErrorKind::kUsage, "a sequence has at least one token");
  }
  const ModelShape shape = shape_of(llm, false);
  Count elements;
  Count keys;
  for (const LlmLayer& layer : llm.layers) {
    if (!layer.attends()) {
      continue;
    }
    const bool is_bounded = layer.reach == Reach::kWindow || layer.reach == Reach::kChunk;
    const std::int64_t kept = is_bounded ? std::min(context, layer.reach_tokens) : context;
    const std::int64_t entries = layer.compressed_by == 0 ? 0 : context / layer.compressed_by;
    elements += (Count(kept) + entries) * shape.attention_of(layer).kv_elements;
    keys += layer.has_indexer ? index_keys(layer, context) : Count(0);
  }
  return {Count(llm.kv_width.bytes_of(elements.value())) +
              llm.index_key_width.bytes_of((keys * shape.index_key_elements).value()),
          state_bytes(llm, shape)};
}

LlmParams params_of(const Llm& llm) {
  const ModelShape shape = shape_of(llm, false);
  // A tied model stores the table once; the head then has no parameters of its own.
  const Count table = Count(llm.hidden) * llm.vocab;
  LlmParams params;
  PartCounts& parts = params.parts;
  parts[LlmPart::kEmbedding] = table + Count(llm.hidden) * llm.positions;
  parts[LlmPart::kQkv] = shape.qkv;
  parts[LlmPart::kOut] = shape.out;
  parts[LlmPart::kMlp] = shape.mlp;
  parts[LlmPart::kNorms] = shape.norms;
  parts[LlmPart::kLmHead] = llm.is_tied ? Count(0) : table;
  parts[LlmPart::kIndexer] = shape.indexer;
  params.mtp = mtp_weights(llm, shape);
  Count idle = 0;
  // Idle experts are stored, but a token does not pass through them.
  if (llm.moe) {
    const Count expert = shape.expert + shape.expert_bias;
    parts[LlmPart::kRouter] = shape.router + shape.router_bias;
    parts[LlmPart::kExperts] = expert * llm.moe->experts;
    parts[LlmPart::kShared] = shape.shared;
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
  if (!llm.no_cost_reason.empty()) {
    throw Error(ErrorKind::kInput, llm.no_cost_reason);
  }
  // With fewer KV heads than GPUs, each GPU keeps a copy of one.
  const auto shared = [&](std::int64_t heads, const char* what) {
    return heads >= num_gpus ? divided(heads, num_gpus, what) : 1;
  };
  shard.heads = divided(llm.heads, num_gpus, "attention heads");
  shard.kv_heads = shared(llm.kv_heads, "KV heads");
  if (llm.window_heads) {
    shard.window_heads->heads = divided(llm.window_heads->heads, num_gpus, "attention heads");
    shard.window_heads->kv_heads = shared(llm.window_heads->kv_heads, "KV heads");
  }
  if (llm.state) {
    shard.state->value_heads = divided(llm.state->value_heads, num_gpus, "heads of the state");
    shard.state->key_heads = shared(llm.state->key_heads, "key heads of the state");
  }
  if (llm.compressed) {
    shard.compressed->out_groups =
        divided(llm.compressed->out_groups, num_gpus, "groups of the output projection");
  }
  shard.dense_ff = divided(llm.dense_ff, num_gpus, "columns of the MLP");
  shard.vocab = (llm.vocab + num_gpus - 1) / num_gpus;
  if (llm.moe) {
    shard.moe->expert_ff = divided(llm.moe->expert_ff, num_gpus, "columns of an expert");
    shard.moe->shared_ff = divided(llm.moe->shared_ff, num_gpus, "columns of the shared expert");
  }
  return shard;
}

}  // namespace gpuwhy
