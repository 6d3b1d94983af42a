// SPDX-License-Identifier: Apache-2.0
//
// Weights of a model's layers, by part, and the widths its attention works with.
#pragma once

#include "model/llm.h"

namespace gpuwhy {

// Attention of one layer.
struct AttentionCosts {
  Count qkv;
  Count out;
  Count small;        // biases, norms of heads, sinks: read, not multiplied
  Count score_width;  // multiply-adds a query-key pair needs, all heads
  Count value_width;
  Count kv_elements;  // per token
};

// All layers together, except where it says one.
struct ModelShape {
  AttentionCosts attention;  // of one layer
  AttentionCosts windowed;   // of one layer with a window, where its heads differ
  StateCosts state;          // of one layer
  Count num_state_layers;
  Count num_moe_layers;
  Count qkv;
  Count out;
  Count norms;
  Count mlp;
  Count router;
  Count router_bias;
  Count shared;       // and what projects into the experts' width and back
  Count expert;       // one in each layer that has them
  Count expert_bias;  // the same
  Count indexer;
  Count index_pair_width;    // multiply-adds the indexer needs for a pair
  Count index_key_elements;  // it keeps of a token, in one layer

  const AttentionCosts& attention_of(const LlmLayer& layer) const {
    return layer.reach == Reach::kWindow ? windowed : attention;
  }
};

// MLA is counted in its compressed form if `is_mla_absorbed`, as decode kernels run it. Throws
// kInput if the model has no cost.
ModelShape shape_of(const Llm& llm, bool is_mla_absorbed);

// Weights of the layers that predict further tokens, without the tables they share.
std::int64_t mtp_weights(const Llm& llm, const ModelShape& shape);

}  // namespace gpuwhy
