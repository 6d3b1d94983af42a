// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "analysis/names/kernel_families.h"
#include "trace/trace.h"

namespace gpuwhy {

// What a kernel does in a layer, as far as the order of kernels needs it.
enum class KernelRole : std::uint8_t {
  kPlain,
  kGemm,       // also matrix times vector
  kAttention,  // fused, or the softmax of one that is not
  kNorm,
  kRope,
  kActivation,
  kEmbedding,
  kSampling,
  kComm,
};

// Kernels that take the same place in a layer, though autotuning and shapes give them different
// names. All matrix products are one symbol, other kernels differ by their names without
// numbers.
struct KernelSymbols {
  std::vector<std::uint32_t> of_name;  // by StringId; kNone: not a kernel's name
  std::vector<KernelRole> roles;       // by symbol
  std::vector<bool> is_backward;       // by symbol: of a backward pass, by its name
  std::vector<std::uint64_t> hashes;   // by symbol: numbers that look random

  static constexpr std::uint32_t kGemm = 0;

  // A new symbol.
  std::uint32_t add(KernelRole role, bool is_of_backward);
};

KernelSymbols find_symbols(const Trace& trace, const KernelFamilies& families);

}  // namespace gpuwhy
