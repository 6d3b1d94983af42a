// SPDX-License-Identifier: Apache-2.0
//
// Comparison of stretches of kernels by what they hold.
#include "analysis/kernels/kernel_stretches.h"

namespace gpuwhy {

Extras Stretches::extras(std::uint32_t begin, std::uint32_t end, std::uint32_t other_begin,
                         std::uint32_t other_end) {
  for (std::uint32_t i = other_begin; i < other_end; ++i) {
    ++counts_[stream_[i]];
  }
  Extras extras;
  for (std::uint32_t i = begin; i < end; ++i) {
    if (--counts_[stream_[i]] < 0) {
      const KernelRole role = symbols_.roles[stream_[i]];
      ++extras.count;
      extras.has_gemm |= role == KernelRole::kGemm;
      extras.has_embedding |= role == KernelRole::kEmbedding;
    }
  }
  for (std::uint32_t i = other_begin; i < other_end; ++i) {
    counts_[stream_[i]] = 0;
  }
  for (std::uint32_t i = begin; i < end; ++i) {
    counts_[stream_[i]] = 0;
  }
  return extras;
}

std::uint64_t bag_of(SymbolStream stream, const KernelSymbols& symbols, std::size_t begin,
                     std::size_t end) {
  const std::uint64_t* const hashes = symbols.hashes.data();
  std::uint64_t sum = 0;
  for (const std::uint32_t symbol : stream.subspan(begin, end - begin)) {
    sum += hashes[symbol];
  }
  return sum;
}

}  // namespace gpuwhy
