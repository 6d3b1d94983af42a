// SPDX-License-Identifier: Apache-2.0
//
// Parsing of operator and module names as written by PyTorch, vLLM and SGLang.
//
// Covers PyTorch's profiler and its NVTX ranges, and the layer hooks of vLLM and SGLang. Names of
// other frameworks pass unchanged and yield no layers.
#include "analysis/operator_names.h"

#include <algorithm>
#include <charconv>

#include <fmt/format.h>

namespace gpuwhy {
namespace {

constexpr std::string_view kModuleEvent = "nn.Module: ";   // PyTorch's profiler
constexpr std::string_view kModuleRange = "{'Module': '";  // the hooks of vLLM and SGLang
constexpr std::string_view kLayerLists[] = {"layers", "layer", "blocks", "block", "h"};
constexpr std::string_view kLayerClasses[] = {"Layer", "Block"};
// What PyTorch appends to an operator's name (torch/csrc/autograd/profiler_legacy.cpp, getNvtxStr).
constexpr std::string_view kAppended[] = {
    ", seq = ", ", op_id = ", ", sizes = ", ", input_op_ids = ", ", stashed seq"};

std::optional<std::int64_t> index_of(std::string_view text) {
  std::int64_t value = 0;
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool is_index = failure == std::errc() && end == text.data() + text.size() && value >= 0;
  return is_index ? std::optional(value) : std::nullopt;
}

}  // namespace

std::string_view operator_name(std::string_view range_text) {
  std::size_t end = range_text.size();
  for (const std::string_view appended : kAppended) {
    end = std::min(end, range_text.find(appended));
  }
  return range_text.substr(0, end);
}

std::optional<LayerName> layer_of(std::string_view module) {
  // Class names end in "_N"; only those of decoder layers count.
  if (module.starts_with(kModuleEvent)) {
    module.remove_prefix(kModuleEvent.size());
    const std::size_t line = module.rfind('_');
    const auto index =
        line == std::string_view::npos ? std::nullopt : index_of(module.substr(line + 1));
    const std::string_view name = module.substr(0, line);
    const bool is_layer =
        std::any_of(std::begin(kLayerClasses), std::end(kLayerClasses),
                    [&](std::string_view ending) { return name.ends_with(ending); });
    return index && is_layer ? std::optional(LayerName{name, *index}) : std::nullopt;
  }
  std::size_t start = 0;
  for (std::size_t dot = module.find('.'); dot != std::string_view::npos;
       start = dot + 1, dot = module.find('.', start)) {
    const std::string_view part = module.substr(start, dot - start);
    const std::size_t end = std::min(module.find('.', dot + 1), module.size());
    const auto index = index_of(module.substr(dot + 1, end - dot - 1));
    if (index &&
        std::find(std::begin(kLayerLists), std::end(kLayerLists), part) != std::end(kLayerLists)) {
      return LayerName{module.substr(0, dot), *index};
    }
  }
  return std::nullopt;
}

std::string_view module_path(std::string_view text) {
  if (!text.starts_with(kModuleRange)) {
    return {};
  }
  text.remove_prefix(kModuleRange.size());
  return text.substr(0, text.find('\''));
}

std::string_view path_of_module(std::string_view text) {
  const std::string_view path = module_path(text);
  return path.empty() ? text : path;
}

std::string over_layers(std::string_view module) {
  const auto layer = layer_of(module);
  if (!layer || module.starts_with(kModuleEvent)) {
    return std::string(module.starts_with(kModuleEvent) ? module.substr(kModuleEvent.size())
                                                        : module);
  }
  const std::size_t behind = module.find('.', layer->stack.size() + 1);
  return fmt::format("{}.*{}", layer->stack,
                     behind == std::string_view::npos ? "" : module.substr(behind));
}

bool is_operator_text(std::string_view text) {
  return text.starts_with("aten::") || operator_name(text).size() != text.size();
}

}  // namespace gpuwhy
