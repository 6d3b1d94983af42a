// SPDX-License-Identifier: Apache-2.0
//
// Known computations that ran in parts although a fused kernel for them exists.
#pragma once

#include <string>
#include <string_view>

namespace gpuwhy {

struct FusedPath {
  std::string_view what;     // "RMSNorm"
  std::string_view words;    // of kernel names, in this order, separated by spaces
  std::string_view pytorch;  // what to use in PyTorch
  std::string_view vllm;     // the name of vLLM's operator; empty: it has none
};

// The first known computation whose kernels are in a row of kernels; null if there is none.
const FusedPath* fused_path_of(const std::string& kernels);

// What fuses this computation alone, for the engine that ran ("vllm", "sglang"); "" for PyTorch
// itself.
std::string fused_path_advice(const FusedPath& path, std::string_view engine);

}  // namespace gpuwhy
