// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/attribution.h"
#include "analysis/kernel_families.h"
#include "results/row.h"
#include "trace/trace.h"

namespace gpuwhy {

struct SteadyPart;

// Kernels in a row on one stream that one kernel could replace, by stage and GPU.
struct KernelChains {
  RowName stage;
  std::string device;
  // Attention in parts: a product, a softmax and a product, with whatever moves data between them.
  std::int64_t num_attentions = 0;
  std::int64_t attention_ns = 0;
  std::int64_t product_ns = 0;  // of it: the products, which remain
  // Kernels that only move data through memory.
  std::int64_t num_movers = 0;
  std::int64_t mover_ns = 0;
  std::int64_t fused_ns = 0;  // of it: what remains if each row is one kernel
  // The row of two or more of them that takes most time, in all its occurrences.
  std::string row_kernels = {};  // "copy f32, pow f32, mean f32"; empty: there is none
  std::int64_t num_rows = 0;
  std::int64_t row_ns = 0;
  std::int64_t row_fused_ns = 0;  // of it: what remains if each of them is one kernel

  void add(const KernelChains& other);
};

// Kernels with which cuDNN and MIOpen convert between NCHW and NHWC around convolutions.
bool converts_layout(std::string_view kernel_name);

// `steady` has the steady phase of each device: its chains are there again as the stage `steady`.
std::vector<KernelChains> find_kernel_chains(const Trace& trace, const KernelFamilies& families,
                                             const Stages& stages, const Attribution& attribution,
                                             const std::vector<SteadyPart>& steady);

}  // namespace gpuwhy
