// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "analysis/names/kernel_symbols.h"

namespace gpuwhy {

// A kernel as far as its part in the model depends on it.
struct PartKernel {
  KernelRole role = KernelRole::kPlain;
  std::string family;
  std::string_view name;
};

// The parts of a forward layer's kernels, in their order: "input norm", "qkv", "rope", "attention",
// "o", "gate_up", "down". A kernel whose part is not certain keeps its family.
std::vector<std::string> parts_of_layer(const std::vector<PartKernel>& kernels);

// The same before the first layer, and after the last.
std::vector<std::string> parts_of_prologue(const std::vector<PartKernel>& kernels);
std::vector<std::string> parts_of_epilogue(const std::vector<PartKernel>& kernels);

}  // namespace gpuwhy
