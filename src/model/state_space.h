// SPDX-License-Identifier: Apache-2.0
//
// Layers that keep a state of fixed size instead of keys and values: state-space models and linear
// attention.
#pragma once

#include <cstdint>

#include "model/count.h"
#include "model/dtype_width.h"

namespace gpuwhy {

enum class StateKind : std::uint8_t {
  kGatedDelta,  // Qwen3-Next, Qwen3.5: one decay a head
  kKimiDelta,   // Kimi Linear: one decay a channel, from a projection of low rank
  kMamba2,      // Nemotron-H, Granite 4, Falcon-H1
  kMamba1,      // Jamba: every channel is a head of its own
  kLightning,   // MiniMax-01, M1: a fixed decay, no convolution
};

// The sizes of one such layer. A head keeps a matrix of key_dim x value_dim. In Mamba's words: a
// key is B or C, its head a group, key_dim the state size and value_dim the head's size.
struct StateShape {
  StateKind kind = StateKind::kMamba2;
  std::int64_t key_heads = 0;
  std::int64_t value_heads = 0;
  std::int64_t key_dim = 0;
  std::int64_t value_dim = 0;
  std::int64_t conv_kernel = 0;     // taps of the short convolution; 0: none
  std::int64_t time_step_rank = 0;  // Mamba 1 only
  bool has_conv_bias = false;
  bool has_gated_norm = true;       // Mamba 2: a norm of all channels before the output projection
  bool has_full_rank_gate = false;  // Kimi: the output gate is one matrix, not two of low rank
  StoredWidth state_width{1, 2};    // of the state; the convolution's is the cache's
};

// What one layer multiplies, holds and keeps.
struct StateCosts {
  Count in;           // weights of the projections before the recurrence
  Count out;          // of the output projection
  Count small;        // convolution, decays, norms: read, not multiplied as matrices
  Count steps;        // multiply-adds of convolution and recurrence, a token
  Count state;        // elements a sequence keeps
  Count convolution;  // elements a sequence keeps for the convolution
};
StateCosts costs_of(const StateShape& shape, std::int64_t hidden);

}  // namespace gpuwhy
