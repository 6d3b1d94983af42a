// SPDX-License-Identifier: Apache-2.0
//
// Weights and work of a layer with a state of fixed size.
//
// The recurrence is counted step by step, as generation runs it: writing to a head's matrix and
// reading from it are key_dim x value_dim multiply-adds each, and a delta rule first reads what it
// is about to replace. Decay is elementwise and counts nothing, as norms do elsewhere.
//
// What it gets wrong: a prompt runs in chunks, which executes more multiply-adds than the steps
// counted here, but on tensor cores. The count stays the least that the model needs.
#include "model/state_space.h"

namespace gpuwhy {
namespace {

// Projections of Mamba 1: x and its gate, then the time step, B and C from x.
void add_first_mamba(const StateShape& shape, Count hidden, StateCosts& costs) {
  const Count channels = Count(shape.value_heads) * shape.value_dim;
  const Count selected = Count(shape.time_step_rank) + Count(2) * shape.key_dim;
  costs.in = hidden * channels * 2 + channels * selected + Count(shape.time_step_rank) * channels;
  // The time step's bias, A, D, and the norms of time step, B and C.
  costs.small += channels + channels * shape.key_dim + channels + selected;
}

}  // namespace

StateCosts costs_of(const StateShape& shape, std::int64_t hidden) {
  const Count keys = Count(shape.key_heads) * shape.key_dim;
  const Count values = Count(shape.value_heads) * shape.value_dim;
  const Count heads = shape.value_heads;
  const Count matrix = heads * shape.key_dim * shape.value_dim;
  StateCosts costs;
  costs.out = values * hidden;
  costs.state = matrix;
  Count convolved = keys * 2 + values;
  Count visits = 2;  // write, read
  switch (shape.kind) {
    case StateKind::kGatedDelta:  // query, key, value, output gate; a write strength and a decay
      costs.in = Count(hidden) * (keys * 2 + values * 2 + heads * 2);
      costs.small = heads * 2 + shape.value_dim;
      visits = 3;
      break;
    case StateKind::kKimiDelta: {
      const Count low_rank = Count(shape.value_dim) * (Count(hidden) + values);
      costs.in = Count(hidden) * (keys * 2 + values + heads) + low_rank +
                 (shape.has_full_rank_gate ? Count(hidden) * values : low_rank);
      costs.small = heads + values + shape.value_dim;
      visits = 3;
      break;
    }
    case StateKind::kMamba2:  // gate, x, B, C, time step
      costs.in = Count(hidden) * (keys * 2 + values * 2 + heads);
      costs.small = heads * 3 + (shape.has_gated_norm ? values : Count(0));
      break;
    case StateKind::kMamba1:
      convolved = values;
      add_first_mamba(shape, hidden, costs);
      break;
    case StateKind::kLightning:  // query, key, value, output gate
      costs.in = Count(hidden) * values * 4;
      costs.small = values;
      break;
  }
  const Count kernel = shape.conv_kernel;
  costs.small += convolved * kernel + (shape.has_conv_bias ? convolved : Count(0));
  costs.steps = convolved * kernel + visits * matrix;
  costs.convolution = kernel.value() > 0 ? convolved * (kernel - 1) : Count(0);
  return costs;
}

}  // namespace gpuwhy
