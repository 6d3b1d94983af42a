// SPDX-License-Identifier: Apache-2.0
//
// Kernels that are compiled for one generation of GPUs, by their names.
#include "analysis/names/gpu_generation.h"

namespace gpuwhy {

int generation_of_kernel(std::string_view kernel_name) {
  const auto has = [&](std::string_view word) {
    return kernel_name.find(word) != std::string_view::npos;
  };
  if (has("sm120_")) {
    return 12;
  }
  if (has("sm100")) {
    return 10;
  }
  return kernel_name.starts_with("nvjet_") || kernel_name.starts_with("sm90_") ? 9 : 0;
}

std::string generation_words(int compute_major) {
  return compute_major == 9    ? "Hopper (sm_90)"
         : compute_major == 10 ? "Blackwell (sm_100)"
         : compute_major == 12 ? "Blackwell (sm_120)"
                               : "";
}

}  // namespace gpuwhy
