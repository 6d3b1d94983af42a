// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace gpuwhy {

// "aten::linear" from "aten::linear, seq = 12, op_id = 3, sizes = [[8, 64]]", PyTorch's name for
// NVTX ranges.
std::string_view operator_name(std::string_view range_text);

// A layer of a model, from the name of a module.
struct LayerName {
  std::string_view stack;  // "model.layers", "Qwen2DecoderLayer"
  std::int64_t index = 0;
};
// From "model.layers.3.self_attn" and "nn.Module: Qwen2DecoderLayer_3".
std::optional<LayerName> layer_of(std::string_view module);

// Whether a range's text is one that PyTorch gives to an operator.
bool is_operator_text(std::string_view range_text);

// The module of a range pushed by vLLM or SGLang; empty for other ranges.
std::string_view module_path(std::string_view range_text);

// The same, but the text itself where it is not such a range.
std::string_view path_of_module(std::string_view text);

// "model.layers.*.mlp": the same for this part of every layer.
std::string over_layers(std::string_view module);

// A Python function without the line and addresses of its text, its file first:
// "dataloader.py: __next__".
std::string function_name(std::string_view text);

// A range's text with its numbers replaced: "layer_12" and "layer_13" are one name.
std::string without_numbers(std::string_view text);

}  // namespace gpuwhy
