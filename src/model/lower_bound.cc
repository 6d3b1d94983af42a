// SPDX-License-Identifier: Apache-2.0
//
// Lower bound on the time of a model's work on a GPU: the roofline of each part.
//
// Times are added, not FLOPs: a model whose linear layers run in fp8 and whose attention runs in
// bf16 has two peaks, and a ratio over either one would be wrong. Compute and memory are assumed to
// overlap perfectly, so this is a bound, not a forecast.
#include "model/lower_bound.h"

#include <algorithm>

#include <fmt/format.h>

namespace gpuwhy {
namespace {

// Bytes moved with a part's products: its weights, the KV cache for scores and values, and states
// for the recurrence.
double bytes_with(const LlmCost& cost, LlmPart part) {
  const auto bytes = static_cast<double>(cost.weight_bytes[part].value());
  if (part == LlmPart::kScores || part == LlmPart::kValues) {
    return bytes + static_cast<double>((cost.kv_read_bytes + cost.kv_write_bytes).value()) / 2;
  }
  if (part == LlmPart::kState) {
    return bytes + static_cast<double>((cost.state_read_bytes + cost.state_write_bytes).value());
  }
  return bytes;
}

}  // namespace

const std::string& dtype_of(const Llm& llm, LlmPart part) {
  switch (part) {
    case LlmPart::kQkv:
    case LlmPart::kOut:
    case LlmPart::kMlp:
    case LlmPart::kExperts:
    case LlmPart::kShared:
      return llm.matmul_dtype;
    default:
      return llm.attention_dtype;
  }
}

// A part whose type has no known peak makes compute_s and per_part_s unknown, never smaller.
CostBound bound_of(const Llm& llm, const LlmCost& cost, const GpuSpec& gpu) {
  CostBound bound;
  bound.memory_s = static_cast<double>(cost.total_bytes()) / gpu.bytes_per_s();
  double compute_s = 0;
  double per_part_s = 0;
  for (std::size_t i = 0; i < kNumLlmParts; ++i) {
    const auto part = static_cast<LlmPart>(i);
    const auto flops = static_cast<double>(cost.flops[part].value());
    const double memory_s = bytes_with(cost, part) / gpu.bytes_per_s();
    double part_s = 0;
    if (flops > 0) {
      const auto peak = gpu.flops_per_s(dtype_of(llm, part));
      if (!peak) {
        bound.reason = fmt::format("{} has no dense peak for {}", gpu.name, dtype_of(llm, part));
        return bound;
      }
      part_s = flops / *peak;
    }
    compute_s += part_s;
    per_part_s += std::max(part_s, memory_s);
  }
  bound.compute_s = compute_s;
  bound.per_part_s = per_part_s;
  return bound;
}

std::optional<double> crossover_batch(const Llm& llm, const GpuSpec& gpu) {
  const auto peak = gpu.flops_per_s(llm.matmul_dtype);
  if (!peak) {
    return std::nullopt;
  }
  const LlmPart part = llm.moe ? LlmPart::kExperts : LlmPart::kMlp;
  return llm.width(part).bits() / 8 * *peak / (2 * gpu.bytes_per_s());
}

}  // namespace gpuwhy
