// SPDX-License-Identifier: Apache-2.0
//
// Parsing of names of operators, modules and functions as written by PyTorch, vLLM and SGLang.
//
// Covers PyTorch's profiler and its NVTX ranges, and the layer hooks of vLLM and SGLang. Names of
// other frameworks pass unchanged and yield no layers.
#include "analysis/names/operator_names.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/parse_number.h"

namespace gpuwhy {
namespace {

constexpr std::string_view kModuleEvent = "nn.Module: ";   // PyTorch's profiler
constexpr std::string_view kModuleRange = "{'Module': '";  // the hooks of vLLM and SGLang
constexpr std::string_view kLayerLists[] = {"layers", "layer", "blocks", "block", "h"};
constexpr std::string_view kLayerClasses[] = {"Layer", "Block"};
// What PyTorch appends to an operator's name (torch/csrc/autograd/profiler_legacy.cpp, getNvtxStr).
constexpr std::string_view kAppended[] = {
    ", seq = ", ", op_id = ", ", sizes = ", ", input_op_ids = ", ", stashed seq"};
constexpr std::size_t kLongestName = 200;  // of what is shown; a file's is of any length

std::optional<std::int64_t> index_of(std::string_view text) {
  const auto value = parse_whole(text);
  return value && *value >= 0 ? value : std::nullopt;
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
    const bool is_layer = std::ranges::any_of(
        kLayerClasses, [&](std::string_view ending) { return name.ends_with(ending); });
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

std::string without_numbers(std::string_view text) {
  std::string name;
  const std::string_view shown = text.substr(0, kLongestName);
  for (std::size_t i = 0; i < shown.size();) {
    const auto is_digit = [&](std::size_t at) {
      return at < shown.size() && shown[at] >= '0' && shown[at] <= '9';
    };
    const auto is_letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); };
    if (is_digit(i) && (i == 0 || !is_letter(shown[i - 1]))) {
      while (is_digit(i)) {
        ++i;
      }
      name += 'N';
    } else {
      name += shown[i++];
    }
  }
  return name;
}

std::string function_name(std::string_view text) {
  // "torch/utils/data/dataloader.py(630): __next__"
  const std::size_t line = text.find(".py(");
  const std::size_t name = text.find("): ");
  if (line != std::string_view::npos && name != std::string_view::npos && name > line) {
    const std::string_view path = text.substr(0, line + 3);
    const std::size_t folder = path.rfind('/');
    const std::string_view file = folder == std::string_view::npos ? path : path.substr(folder + 1);
    return std::string(file.substr(0, kLongestName / 2)) + ": " +
           std::string(text.substr(name + 3, kLongestName / 2));
  }
  // "<built-in method acquire of _thread.lock object at 0x7f0c>"
  const std::size_t address = text.find(" at 0x");
  return std::string(text.substr(0, address).substr(0, kLongestName)) +
         (address != std::string_view::npos && text.ends_with('>') ? ">" : "");
}

}  // namespace gpuwhy
