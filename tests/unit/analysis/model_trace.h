// SPDX-License-Identifier: Apache-2.0
//
// A generator of recordings of layered models, with the pass and layer of every kernel.
#pragma once

#include <cstdint>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "trace/trace.h"

namespace gpuwhy {

// What a generated program runs.
struct ModelTraceOptions {
  int num_layers = 12;
  int num_passes = 3;
  int num_kinds = 1;               // of layers, in turn
  int num_devices = 1;             // with the same work
  bool is_fused_attention = true;  // else a softmax between two products
  bool has_experts = false;
  bool has_communication = false;  // after o and down, on a stream of its own
  bool is_first_norm_other = false;
  bool has_autotuned_names = false;  // products are called differently from layer to layer
  int num_plain_kernels = 2;         // copies and the like between the others
  double stray_share = 0;            // kernels that slip in anywhere
  bool has_shuffled_rows = false;    // ModelTrace::layers is not of them
  int prefill_every = 0;          // the first of this many passes computes a prompt; 0: none does
  std::string prefill_attention;  // empty: called as in other passes
  std::string decode_attention;
  std::string product_name;   // of all products; empty: by their place
  int num_sequences = 0;      // all but products have a block per token; 0: no grids
  int tile_grid = 1;          // of attention in passes that compute no prompt
  bool has_backward = false;  // a backward pass after each
};

// A kernel that takes longer than it should.
struct Planted {
  int pass = 0;  // -1: every pass
  int layer = 0;
  int position = 0;
  std::int64_t extra_ns = 0;
};

struct ModelTrace {
  Trace trace;
  // By kernel row. Before the first layer -1, after the last num_layers; nullopt: a stray kernel,
  // which may count anywhere.
  std::vector<std::optional<int>> layers;
  std::vector<int> passes;
};

ModelTrace make_model_trace(const ModelTraceOptions& options, std::mt19937& random,
                            const std::optional<Planted>& planted = std::nullopt);

// Options by chance: what engines do, in all mixtures.
ModelTraceOptions random_model(std::mt19937& random);

}  // namespace gpuwhy
