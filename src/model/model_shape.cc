// SPDX-License-Identifier: Apache-2.0
//
// Sums of weights over a model's layers.
//
// Layers are visited one by one instead of grouped: a model has about a hundred, and a loop is
// easier to verify than a grouping. Every layer may mix its tokens in another way.
//
// What it gets wrong: mixing of residual streams (DeepSeek-V4) is counted as weights that are read,
// not as products; they are 0.2 % of what a token uses.
#include "model/model_shape.h"

#include <algorithm>

#include "base/error.h"

namespace gpuwhy {
namespace {

AttentionCosts plain_attention(const Llm& llm, const HeadShape& heads) {
  const Count query = Count(heads.heads) * heads.head_dim;
  const Count key = Count(heads.kv_heads) * heads.head_dim;
  const Count value = Count(heads.kv_heads) * heads.value_dim;
  const Count width = Count(heads.heads) * heads.value_dim;
  const Count projected = query * (llm.has_out_gate ? 2 : 1) + key + value;
  AttentionCosts costs;
  costs.qkv = Count(llm.hidden) * projected;
  costs.out = width * llm.hidden;
  costs.small += llm.has_qkv_bias ? projected : Count(0);
  costs.small += llm.has_qk_norm ? Count(2) * heads.head_dim : Count(0);
  costs.small += llm.has_wide_qk_norm ? query + key : Count(0);
  costs.small += heads.has_sinks ? heads.heads : 0;
  costs.score_width = query;
  costs.value_width = width;
  costs.kv_elements = key + value;
  return costs;
}

// The MLA branch counts its compressed or expanded form, as the kernels of the phase would run it.
AttentionCosts latent_attention(const Llm& llm, const MlaShape& mla, bool is_absorbed) {
  const Count hidden = llm.hidden;
  const Count heads = llm.heads;
  const Count query_width = heads * (Count(mla.nope_dim) + mla.rope_dim);
  const Count query = mla.query_rank == 0
                          ? hidden * query_width
                          : hidden * mla.query_rank + Count(mla.query_rank) * query_width;
  AttentionCosts costs;
  costs.qkv = query + hidden * (Count(mla.kv_rank) + mla.rope_dim) +
              Count(mla.kv_rank) * heads * (Count(mla.nope_dim) + mla.value_dim);
  costs.qkv += mla.has_out_gate ? hidden * heads * mla.value_dim : Count(0);
  costs.out = heads * mla.value_dim * hidden;
  costs.small = Count(mla.query_rank) + mla.kv_rank;
  costs.score_width = is_absorbed ? heads * (Count(mla.kv_rank) + mla.rope_dim) : query_width;
  costs.value_width = heads * (is_absorbed ? mla.kv_rank : mla.value_dim);
  costs.kv_elements = Count(mla.kv_rank) + mla.rope_dim;
  return costs;
}

// One vector a token is key and value of all heads.
AttentionCosts compressed_attention(const Llm& llm, const CompressedShape& compressed) {
  const Count hidden = llm.hidden;
  const Count width = Count(llm.heads) * llm.head_dim;
  AttentionCosts costs;
  costs.qkv =
      hidden * compressed.query_rank + Count(compressed.query_rank) * width + hidden * llm.head_dim;
  costs.out =
      width * compressed.out_rank + Count(compressed.out_groups) * compressed.out_rank * hidden;
  costs.small = Count(compressed.query_rank) + llm.head_dim + llm.heads;
  costs.score_width = width;
  costs.value_width = width;
  costs.kv_elements = llm.head_dim;
  return costs;
}

AttentionCosts attention_costs(const Llm& llm, bool is_mla_absorbed) {
  AttentionCosts costs;
  if (llm.compressed) {
    costs = compressed_attention(llm, *llm.compressed);
  } else if (llm.mla) {
    costs = latent_attention(llm, *llm.mla, is_mla_absorbed);
  } else {
    const std::int64_t value_dim = llm.value_dim > 0 ? llm.value_dim : llm.head_dim;
    costs = plain_attention(llm, {llm.heads, llm.kv_heads, llm.head_dim, value_dim, llm.has_sinks});
  }
  costs.small += llm.has_out_bias ? llm.hidden : 0;
  return costs;
}

// Weights that make one entry of several tokens: a value and its gate, a bias for each position,
// a norm. Entries that an indexer picks from overlap, which doubles the width.
void add_compressor(const Llm& llm, const LlmLayer& layer, std::int64_t width, Count& weights,
                    Count& small) {
  const Count made = Count(width) * (layer.picked_entries > 0 ? 2 : 1);
  weights += Count(2) * llm.hidden * made;
  small += made * layer.compressed_by + width;
}

void add_indexer(const Llm& llm, const LlmLayer& layer, ModelShape& shape) {
  const IndexerShape& indexer = *llm.indexer;
  const Count queries = Count(indexer.heads) * indexer.head_dim;
  shape.indexer += Count(indexer.query_rank) * queries + Count(llm.hidden) * indexer.heads;
  if (layer.compressed_by > 0) {
    add_compressor(llm, layer, indexer.head_dim, shape.indexer, shape.norms);
  } else {
    shape.indexer += Count(llm.hidden) * indexer.head_dim;
    shape.norms += Count(2) * indexer.head_dim;  // a norm with a bias
  }
}

void add_mixer(const Llm& llm, const LlmLayer& layer, ModelShape& shape) {
  if (layer.attends()) {
    const AttentionCosts& attention = shape.attention_of(layer);
    shape.qkv += attention.qkv;
    shape.out += attention.out;
    shape.norms += attention.small;
  }
  if (layer.keeps_state()) {
    shape.qkv += shape.state.in;
    shape.out += shape.state.out;
    shape.norms += shape.state.small;
    shape.num_state_layers += 1;
  }
  if (layer.compressed_by > 0) {
    add_compressor(llm, layer, llm.head_dim, shape.qkv, shape.norms);
  }
  if (layer.has_indexer) {
    add_indexer(llm, layer, shape);
  }
}

void add_feed_forward(const Llm& llm, const LlmLayer& layer, ModelShape& shape) {
  const Count matrices = llm.mlp_matrices;
  const auto bias_of = [&](Count ff) { return (matrices - 1) * ff + llm.hidden; };
  if (!layer.is_moe) {
    shape.mlp += matrices * llm.hidden * llm.dense_ff;
    shape.norms += llm.has_mlp_bias ? bias_of(llm.dense_ff) : Count(0);
    return;
  }
  const MoeShape& moe = *llm.moe;
  const Count width = moe.latent_width > 0 ? moe.latent_width : llm.hidden;
  shape.num_moe_layers += 1;
  shape.router += Count(llm.hidden) * moe.experts;
  shape.router_bias += moe.has_router_bias ? moe.experts : 0;
  shape.expert += matrices * width * moe.expert_ff;
  shape.expert_bias += moe.has_expert_bias ? bias_of(moe.expert_ff) : Count(0);
  shape.shared +=
      matrices * llm.hidden * moe.shared_ff + (moe.has_shared_gate ? Count(llm.hidden) : Count(0));
  shape.shared += Count(2) * llm.hidden * moe.latent_width;
  shape.norms += moe.has_latent_norm ? moe.latent_width : 0;
}

// Mixing of residual streams, before attention, before the experts and before the head.
void add_streams(const Llm& llm, ModelShape& shape) {
  const Count streams = llm.compressed->streams;
  const Count mixed = streams * (streams + 2);
  const Count width = streams * llm.hidden;
  shape.norms +=
      Count(2) * static_cast<std::int64_t>(llm.layers.size()) * (mixed * width + mixed + 3);
  shape.norms += streams * width + streams + 1;
}

}  // namespace

ModelShape shape_of(const Llm& llm, bool is_mla_absorbed) {
  if (!llm.no_cost_reason.empty()) {
    throw Error(ErrorKind::kInput, llm.no_cost_reason,
                "its cost is n/a: docs/formats.md says which families are priced");
  }
  ModelShape shape;
  shape.attention = attention_costs(llm, is_mla_absorbed);
  shape.windowed = llm.window_heads ? plain_attention(llm, *llm.window_heads) : shape.attention;
  if (llm.state) {
    shape.state = costs_of(*llm.state, llm.hidden);
  }
  if (llm.indexer) {
    shape.index_pair_width = Count(llm.indexer->heads) * llm.indexer->head_dim;
    shape.index_key_elements = llm.indexer->head_dim;
  }
  const Count norm = Count(llm.hidden) * (llm.has_norm_bias ? 2 : 1);
  for (const LlmLayer& layer : llm.layers) {
    shape.norms += norm * llm.norms_per_layer;
    add_mixer(llm, layer, shape);
    if (layer.has_feed_forward) {
      add_feed_forward(llm, layer, shape);
    }
  }
  shape.norms += norm;  // before the head
  if (llm.compressed) {
    add_streams(llm, shape);
  }
  return shape;
}

std::int64_t mtp_weights(const Llm& llm, const ModelShape& shape) {
  if (llm.mtp_layers == 0) {
    return 0;
  }
  // One layer like the model's last, behind a projection of the token and the state before it.
  ModelShape one;
  one.attention = shape.attention;
  one.windowed = shape.windowed;
  LlmLayer layer;
  layer.is_moe = llm.moe.has_value();
  layer.has_indexer = llm.indexer.has_value() && !llm.compressed;
  add_mixer(llm, layer, one);
  add_feed_forward(llm, layer, one);
  const Count experts = llm.moe ? (one.expert + one.expert_bias) * llm.moe->experts : Count(0);
  const Count norms = Count(3 + llm.norms_per_layer) * llm.hidden;
  return (Count(llm.mtp_layers) *
          (one.qkv + one.out + one.norms + one.mlp + one.router + one.router_bias + one.shared +
           one.indexer + experts + norms + Count(2) * llm.hidden * llm.hidden))
      .value();
}

}  // namespace gpuwhy
