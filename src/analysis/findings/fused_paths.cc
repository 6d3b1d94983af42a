// SPDX-License-Identifier: Apache-2.0
//
// Catalogue of computations that frameworks have fused kernels for, found by the words of their
// kernels' names in the order in which PyTorch runs them one by one.
//
// Sources: PyTorch's functional API; vLLM's document on CustomOp, by which a disabled operator runs
// as PyTorch's own kernels; Liger-Kernel and FlashAttention, which have RoPE.
#include "analysis/findings/fused_paths.h"

#include <fmt/format.h>

#include "base/text.h"

namespace gpuwhy {
namespace {

constexpr FusedPath kPaths[] = {
    {"RMSNorm", "pow mean rsqrt mul", "a fused RMSNorm (Liger-Kernel, apex, flash-attn)",
     "rms_norm"},
    {"LayerNorm", "mean sub pow mean sqrt div", "torch.nn.functional.layer_norm", ""},
    {"rotary embedding", "neg cat mul add", "a fused rotary kernel (Liger-Kernel, flash-attn)",
     "rotary_embedding"},
    {"GELU", "tanh add mul", "torch.nn.functional.gelu(x, approximate=\"tanh\")", ""},
    {"softmax", "max exp sum div",
     "torch.softmax, or F.scaled_dot_product_attention where it is that of attention", ""},
    {"Adam", "mul add addcmul sqrt addcdiv", "torch.optim.AdamW(..., fused=True)", ""},
    {"SiLU", "sigmoid mul", "torch.nn.functional.silu", "silu_and_mul"},
    {"SwiGLU", "silu mul", "a fused SwiGLU (Liger-Kernel)", "silu_and_mul"},
};

// Whether the words occur one after the other, each at the beginning of a name or after a space.
bool has_in_order(std::string_view kernels, std::string_view words) {
  std::size_t at = 0;
  for (const std::string_view word : split(words, ' ')) {
    while (at < kernels.size() &&
           !((at == 0 || kernels[at - 1] == ' ') && kernels.substr(at).starts_with(word))) {
      ++at;
    }
    if (at >= kernels.size()) {
      return false;
    }
    at += word.size();
  }
  return true;
}

}  // namespace

const FusedPath* fused_path_of(const std::string& kernels) {
  const std::string lower = to_lower(kernels);
  for (const FusedPath& path : kPaths) {
    if (has_in_order(lower, path.words)) {
      return &path;
    }
  }
  return nullptr;
}

std::string fused_path_advice(const FusedPath& path, std::string_view engine) {
  if (engine == "vllm" && !path.vllm.empty()) {
    return fmt::format(
        "vLLM's fused kernel for {} did not run: --compilation-config '{{\"custom_ops\": [\"+{}\"]}}'",
        path.what, path.vllm);
  }
  if (!engine.empty()) {
    return fmt::format("the engine's fused kernel for {}", path.what);
  }
  return std::string(path.pytorch);
}

}  // namespace gpuwhy
