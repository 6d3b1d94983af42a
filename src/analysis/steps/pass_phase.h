// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "analysis/kernels/kernel_stretches.h"

namespace gpuwhy {

// The layers of one pass: a kernel of each, two layers at least, and bag_of() from each to the
// next.
struct PassAnchors {
  std::span<const std::uint32_t> positions;
  std::span<const std::uint64_t> bags;
};

// Where layers begin, seen from their anchors.
struct Phase {
  std::uint32_t before = 0;  // kernels of a layer before its anchor
  std::size_t stride = 1;    // layers apart that are of one kind: 2 where two kinds alternate
  std::uint32_t symbol = 0;  // of the kernel that a layer begins with
  bool has_norm = false;     // that is a norm
};

// The phase of one pass.
Phase phase_of(SymbolStream stream, const KernelSymbols& symbols, const PassAnchors& anchors);

// The first kernel of each layer, then the end of the last. Where a layer has a kernel more or less
// before its anchor, it begins with the same kernel as the others.
std::vector<std::uint32_t> layers_of(SymbolStream stream, const KernelSymbols& symbols,
                                     const PassAnchors& anchors, const Phase& phase);

}  // namespace gpuwhy
