// SPDX-License-Identifier: Apache-2.0
//
// Comparison of stretches of kernels by what they hold.
#include "analysis/kernel_stretches.h"

namespace llmprof {

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

std::uint64_t bag_of(SymbolStream stream, std::size_t begin, std::size_t end) {
  std::uint64_t sum = 0;
  for (std::size_t i = begin; i < end; ++i) {
    std::uint64_t hash = (stream[i] + 1) * 0x9E3779B97F4A7C15ULL;  // mixes as splitmix64 does
    hash = (hash ^ (hash >> 30U)) * 0xBF58476D1CE4E5B9ULL;
    sum += hash ^ (hash >> 27U);
  }
  return sum;
}

}  // namespace llmprof
