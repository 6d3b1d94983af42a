// SPDX-License-Identifier: Apache-2.0
//
// Words for what ran, as far as marks, operators and kernels prove it.
//
// Names of kernels do not prove an engine: engines use each other's kernels. Its own markers do.
#include "report/words/workload_words.h"

#include <algorithm>
#include <string_view>

#include <fmt/format.h>

#include "base/text.h"
#include "base/units.h"
#include "report/document/section_parts.h"
#include "report/sections/speed.h"
#include "results/results.h"
#include "results/stage_role.h"

namespace gpuwhy {
namespace {

bool has_any(std::string_view text, std::initializer_list<std::string_view> words) {
  return std::ranges::any_of(
      words, [&](std::string_view word) { return text.find(word) != std::string_view::npos; });
}

std::string framework_of(const Results& metrics) {
  constexpr std::string_view kMarkers = "step markers of ";
  constexpr std::string_view kEngines[] = {"vLLM", "SGLang",   "TensorRT-LLM",
                                           "ATOM", "Megatron", "transformers"};
  const std::string_view source = metrics.capture.stage_source;
  for (const std::string_view engine : kEngines) {
    const bool has_steps =
        source.starts_with(kMarkers) && source.substr(kMarkers.size()).starts_with(engine);
    const bool has_phases = std::ranges::any_of(
        metrics.host_phases, [&](const HostPhase& phase) { return phase.engine == engine; });
    if (has_steps || has_phases) {
      return engine == "transformers" ? "Hugging Face transformers" : std::string(engine);
    }
  }
  const bool is_pytorch = metrics.capture.tool.find("PyTorch") != std::string::npos ||
                          std::ranges::any_of(metrics.kernels, [](const KernelRow& kernel) {
                            return has_any(kernel.kernel_name, {"at::native::", "c10::"});
                          });
  return is_pytorch ? "PyTorch" : "";
}

// A backward pass is training, prefill and decode are inference; both or neither prove nothing.
// Neither do kernels named dgrad, which also run transposed convolutions forward, nor those of
// torch._foreach.
std::string kind_of(const Results& metrics) {
  const auto is_backward = [](const auto& row) { return row.is_backward; };
  const bool has_backward =
      metrics.capture.stage_source.ends_with("Megatron's training schedule") ||
      (metrics.structure && std::ranges::any_of(metrics.structure->passes, is_backward)) ||
      (metrics.operators &&
       std::ranges::any_of(metrics.operators->rows,
                           [](const OperatorRow& row) {
                             return has_any(row.name, {"ackward", "Optimizer.step"});
                           })) ||
      std::ranges::any_of(metrics.kernels, [](const KernelRow& kernel) {
        return has_any(kernel.kernel_name, {"_backward", "wgrad", "flash_bwd"});
      });
  const bool has_tokens =
      metrics.requests || std::ranges::any_of(metrics.stages, [](const StageRow& stage) {
        return role_of(stage.stage) == StageRole::kPrefill ||
               stage.stage.text().starts_with("decode") ||
               role_of(stage.stage) == StageRole::kMixed;
      });
  return has_backward == has_tokens ? "" : has_backward ? "training" : "inference";
}

std::string layers_of(const Results& metrics) {
  const PassRow* most = nullptr;
  if (!metrics.structure) {
    return "";
  }
  for (const PassRow& pass : metrics.structure->passes) {
    if (!pass.is_backward && pass.num_layers > 0 &&
        (most == nullptr || pass.kernel_ns > most->kernel_ns)) {
      most = &pass;
    }
  }
  return most == nullptr ? "" : count_of(most->num_layers, "layer");
}

}  // namespace

std::string WorkloadWords::sentence() const {
  std::string text = !kind.empty() && !framework.empty()
                         ? fmt::format("{} with {}", with_capital(kind), framework)
                     : !kind.empty()      ? with_capital(kind)
                     : !framework.empty() ? fmt::format("A program with {}", framework)
                                          : "";
  if (!layers.empty()) {
    text += fmt::format("{} of {}", text.empty() ? "A model" : ", a model", layers);
  }
  return sequences.empty() || text.empty() ? text : fmt::format("{}, {}", text, sequences);
}

std::vector<std::string> WorkloadWords::facts() const {
  std::vector<std::string> facts = {kind.empty() || framework.empty()
                                        ? kind + framework
                                        : fmt::format("{} with {}", kind, framework),
                                    layers, sequences};
  std::erase(facts, "");
  return facts;
}

WorkloadWords workload_words(const Results& metrics) {
  const std::int64_t num_sequences = metrics.aggregates.decode_sequences.value_or(0);
  const bool is_part =
      metrics.capture.world_size.value_or(1) > std::max<std::int64_t>(num_working_gpus(metrics), 1);
  const std::string layers = layers_of(metrics);
  return {kind_of(metrics), framework_of(metrics),
          // Other GPUs of the job may have other layers.
          layers.empty() || !is_part ? layers : layers + " in this part of the job",
          num_sequences > 0 ? count_of(num_sequences, "sequence") + " in a decode step" : ""};
}

}  // namespace gpuwhy
