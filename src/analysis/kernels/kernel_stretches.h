// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "analysis/names/kernel_symbols.h"

namespace gpuwhy {

// Symbols of kernels in order of start.
using SymbolStream = std::span<const std::uint32_t>;

// Kernels of a stretch that another lacks.
struct Extras {
  std::uint32_t count = 0;
  bool has_gemm = false;
  bool has_embedding = false;
};

// Compares stretches of one stream by the kernels that they hold, in any order.
class Stretches {
 public:
  Stretches(SymbolStream stream, const KernelSymbols& symbols)
      : stream_(stream), symbols_(symbols), counts_(symbols.roles.size()) {}

  Extras extras(std::uint32_t begin, std::uint32_t end, std::uint32_t other_begin,
                std::uint32_t other_end);

 private:
  SymbolStream stream_;
  const KernelSymbols& symbols_;
  std::vector<std::int32_t> counts_;  // all 0 between calls
};

// Whether a distance between layers is more than the ends of a pass, or another kind of layer, add
// to the usual one.
inline bool is_far(std::uint64_t distance, std::uint64_t usual) {
  return 4 * distance > 7 * usual + 4;
}

// A number for the kernels of stream[begin, end) that does not depend on their order.
std::uint64_t bag_of(SymbolStream stream, const KernelSymbols& symbols, std::size_t begin,
                     std::size_t end);

}  // namespace gpuwhy
