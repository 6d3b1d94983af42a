// SPDX-License-Identifier: Apache-2.0
//
// Memory and link traffic of one GPU when several share a model.
//
// Weights are those that are stored, not those that a pass reads: every expert, the whole table.
// Stages of a pipeline are cut as engines cut them, the same number of layers each.
//
// What it gets wrong: engines pad, duplicate norms and keep workspaces; a block of cache that is
// not full counts as full there. Experts that are divided among GPUs are sent tokens by an
// all-to-all whose bytes depend on routing: it has no time here.
#include "model/placement.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/error.h"

namespace gpuwhy {
namespace {

// The share of one GPU before layers are divided.
Llm divided_llm(const Llm& llm, const Placement& placement) {
  Llm shard = shard_of(llm, placement.tensor);
  if (placement.expert <= 1) {
    return shard;
  }
  if (!llm.moe || llm.moe->experts % placement.expert != 0) {
    throw Error(ErrorKind::kUsage, fmt::format("{} experts do not divide among {} GPUs",
                                               llm.moe ? llm.moe->experts : 0, placement.expert));
  }
  shard.moe->expert_ff = llm.moe->expert_ff;
  return shard;
}

// Stored bytes of a stage: the table is with the first, the head with the last.
std::int64_t stored_bytes(const Llm& stage, std::int64_t experts_divided, bool is_first,
                          bool is_last) {
  const LlmParams params = params_of(stage);
  Count bytes;
  for (std::size_t i = 0; i < kNumLlmParts; ++i) {
    const auto part = static_cast<LlmPart>(i);
    const bool is_table = part == LlmPart::kEmbedding;
    const bool is_front = is_table || part == LlmPart::kVision || part == LlmPart::kProjector;
    const bool is_needed = (!is_front || is_first || (is_table && is_last && stage.is_tied)) &&
                           (part != LlmPart::kLmHead || is_last);
    const std::int64_t shared = part == LlmPart::kExperts ? experts_divided : 1;
    bytes += is_needed ? stage.width(part).bytes_of(params.parts[part].value() / shared) : 0;
  }
  return bytes.value();
}

}  // namespace

std::int64_t MemoryNeed::sequences_in(std::int64_t bytes) const {
  return bytes <= weight_bytes ? 0
                               : (bytes - weight_bytes) / std::max<std::int64_t>(sequence.sum(), 1);
}

MemoryNeed memory_need(const Llm& llm, const Placement& placement, std::int64_t context) {
  const auto num_layers = static_cast<std::int64_t>(llm.layers.size());
  if (placement.pipeline < 1 || placement.pipeline > std::max<std::int64_t>(num_layers, 1)) {
    throw Error(ErrorKind::kUsage, fmt::format("{} layers do not divide into {} stages", num_layers,
                                               placement.pipeline));
  }
  const Llm shard = divided_llm(llm, placement);
  const std::int64_t stride = (num_layers + placement.pipeline - 1) / placement.pipeline;
  MemoryNeed need;
  for (std::int64_t first = 0; first < num_layers; first += stride) {
    const std::int64_t last = std::min(first + stride, num_layers);
    Llm stage = shard;
    stage.layers.assign(shard.layers.begin() + first, shard.layers.begin() + last);
    const std::int64_t bytes = stored_bytes(stage, std::max<std::int64_t>(placement.expert, 1),
                                            first == 0, last == num_layers);
    const SequenceBytes sequence = sequence_bytes(stage, context);
    need.weight_bytes = std::max(need.weight_bytes, bytes);
    need.sequence = sequence.sum() > need.sequence.sum() ? sequence : need.sequence;
  }
  return need;
}

std::optional<std::int64_t> usable_bytes(const GpuSpec& gpu) {
  if (gpu.memory_gb.empty()) {
    return std::nullopt;
  }
  // The figure on the box counts in powers of two.
  const double least = *std::min_element(gpu.memory_gb.begin(), gpu.memory_gb.end());
  return static_cast<std::int64_t>(kUsedMemoryFraction * least * 1024 * 1024 * 1024);
}

LinkTime link_time(const Llm& llm, std::int64_t tokens, const Placement& placement,
                   const GpuSpec& gpu) {
  LinkTime time;
  if (placement.tensor <= 1) {
    time.reason = "one GPU holds every layer whole";
    return time;
  }
  time.all_reduces = 1;  // of the table
  for (const LlmLayer& layer : llm.layers) {
    time.all_reduces += (layer.mixer == Mixer::kNothing ? 0 : 1) + (layer.has_feed_forward ? 1 : 0);
  }
  constexpr std::int64_t kActivationBytes = 2;
  time.bytes = (Count(tokens) * llm.hidden * kActivationBytes).value();
  if (!gpu.nvlink_gb_per_s) {
    time.reason = fmt::format("the table has no link of {}", gpu.name);
    return time;
  }
  const double one_way = *gpu.nvlink_gb_per_s * 1e9 / 2;
  time.seconds = static_cast<double>(time.bytes) * static_cast<double>(time.all_reduces) / one_way;
  return time;
}

}  // namespace gpuwhy
