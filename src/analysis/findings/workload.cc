// SPDX-License-Identifier: Apache-2.0
//
// Recognition of framework, engine and vendor, from names that only they use.
#include "analysis/findings/workload.h"

#include <algorithm>
#include <string_view>

#include "analysis/analysis.h"
#include "base/text.h"

namespace gpuwhy {

bool has_one_of(std::string_view name, std::initializer_list<std::string_view> words) {
  return std::ranges::any_of(
      words, [&](std::string_view word) { return name.find(word) != std::string_view::npos; });
}

Workload workload_of(const Analysis& analysis) {
  Workload workload;
  const auto any_kernel = [&](std::initializer_list<std::string_view> words) {
    return std::ranges::any_of(analysis.kernels, [&](const KernelRow& kernel) {
      return has_one_of(kernel.kernel_name, words);
    });
  };
  workload.is_pytorch =
      analysis.capture.format.tool_id == "kineto" ||
      any_kernel({"at::native::", "c10::", "triton_poi_fused", "triton_red_fused"});
  workload.is_amd =
      any_kernel({"Cijk_", "ck::", "rocblas", "miopen"}) ||
      std::any_of(analysis.devices.begin(), analysis.devices.end(), [](const DeviceRow& device) {
        return has_one_of(device.name, {"AMD", "Instinct"});
      });
  // Marks of PyTorch's profiler and of training loops do not come from a serving engine.
  for (const std::string_view name : {"vllm", "sglang", "tensorrt-llm", "atom"}) {
    if (to_lower(analysis.engine).starts_with(name)) {
      workload.engine = name;
    }
  }
  if (workload.engine.empty()) {
    workload.engine = any_kernel({"vllm::"})                   ? "vllm"
                      : any_kernel({"sglang"})                 ? "sglang"
                      : any_kernel({"tensorrt_llm::"})         ? "tensorrt-llm"
                      : any_kernel({"ggml_", "mul_mat_vec_q"}) ? "llama.cpp"
                                                               : "";
  }
  return workload;
}

}  // namespace gpuwhy
