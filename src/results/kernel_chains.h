// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "results/field.h"

namespace gpuwhy {

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

  void add(const KernelChains& other) {
    num_attentions += other.num_attentions;
    attention_ns += other.attention_ns;
    product_ns += other.product_ns;
    num_movers += other.num_movers;
    mover_ns += other.mover_ns;
    fused_ns += other.fused_ns;
    if (row_kernels == other.row_kernels) {
      num_rows += other.num_rows;
      row_ns += other.row_ns;
      row_fused_ns += other.row_fused_ns;
    } else if (other.row_ns > row_ns) {
      row_kernels = other.row_kernels;
      num_rows = other.num_rows;
      row_ns = other.row_ns;
      row_fused_ns = other.row_fused_ns;
    }
  }
};

template <typename F>
void describe(const KernelChains*, F&& f) {
  using T = KernelChains;
  const auto of_chains = [](std::string_view unit, std::string_view text) {
    return number(unit, "", "kernels", "kernel_chains", text);
  };
  f("stage", &T::stage, names_row("the stage, all, or outside"));
  f("device", &T::device, names_row("the GPU", 2));
  f("attentions", &T::num_attentions,
    of_chains("1", "product, softmax, product on one stream, at most 8 kernels between them"));
  f("attention_ns", &T::attention_ns, of_chains("ns", "their kernels, and those between them"));
  f("product_ns", &T::product_ns, of_chains("ns", "of attention_ns: the products"));
  f("movers", &T::num_movers,
    of_chains("1",
              "kernels of the families elementwise, activation, norm, reduction, copy, rope, "
              "softmax"));
  f("mover_ns", &T::mover_ns, of_chains("ns", "sum of their durations"));
  f("fused_ns", &T::fused_ns,
    of_chains(
        "ns",
        "of mover_ns: what remains: half of the longest kernel of each row, and kernels alone"));
  f("row_kernels", &T::row_kernels, maybe("the row of two or more movers with most time"));
  f("rows", &T::num_rows, of_chains("1", "how often that row ran"));
  f("row_ns", &T::row_ns, of_chains("ns", "its kernels, of all times it ran"));
  f("row_fused_ns", &T::row_fused_ns,
    of_chains("ns", "of row_ns: what remains: half of the longest kernel, each time it ran"));
}

}  // namespace gpuwhy
