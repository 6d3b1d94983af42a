// SPDX-License-Identifier: Apache-2.0
//
// Inputs of matrix products, attention and collectives, as the texts in Ops::inputs.
//
// A program calls few distinct shapes many times, so the string pool stores each once. Readers
// write these texts, analyses parse each distinct one.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace gpuwhy {

// Fused attention. Sizes mean nothing without the mask, so values are kept too.
inline constexpr std::string_view kAttentionOps[] = {
    "aten::_flash_attention_forward", "aten::_flash_attention_backward",
    "aten::_efficient_attention_forward", "aten::_scaled_dot_product_cudnn_attention"};

// Whether the inputs of an operator of this name are kept.
bool has_kept_inputs(std::string_view op_name);
// And whether the values of those that are not tensors are too.
bool has_kept_values(std::string_view op_name);

// What a collective sends, as PyTorch describes it. Counts that are not recorded are 0.
struct CollectiveMessage {
  std::string collective;  // "allreduce"
  std::string group;       // of processes, as PyTorch names it
  std::string dtype;       // "Float"
  std::int64_t group_size = 0;
  std::int64_t in_elements = 0;
  std::int64_t out_elements = 0;
};

// Sizes and types of tensors, and values of other inputs.
struct ProductInputs {
  std::vector<std::vector<std::int64_t>> sizes;  // empty for inputs that are not tensors
  std::vector<std::string> types;
  std::vector<std::string> values;  // empty for tensors; of attention alone
};

// Texts to store; empty if there is nothing to store, or more than such operators have.
std::string product_inputs(std::string_view sizes_json, std::string_view types_json,
                           std::string_view values_json = {});
std::string message_inputs(const CollectiveMessage& message);

// And back; nullopt if the text is of the other kind, or not readable.
std::optional<ProductInputs> product_of_inputs(std::string_view text);
std::optional<CollectiveMessage> message_of_inputs(std::string_view text);

}  // namespace gpuwhy
