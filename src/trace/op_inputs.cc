// SPDX-License-Identifier: Apache-2.0
//
// Texts of operator inputs: parts between separators, the first part tells the kind.
//
// A file may claim anything as a size, so sizes are only numbers here: what they mean, and whether
// they fit together, is for analyses to check.
#include "trace/op_inputs.h"

#include <algorithm>

#include "base/parse_number.h"
#include "base/text.h"

namespace gpuwhy {
namespace {

constexpr char kSeparator = '\x1f';
constexpr std::size_t kMostText = 512;  // longest part that is stored
constexpr std::size_t kMostSizes = 8;   // of a tensor
constexpr std::size_t kMostInputs = 16;
constexpr std::string_view kProduct = "product";
constexpr std::string_view kMessage = "message";

constexpr std::string_view kKeptNames[] = {"aten::mm",          "aten::addmm",  "aten::bmm",
                                           "aten::baddbmm",     "aten::linear", "aten::_scaled_mm",
                                           "record_param_comms"};

bool is_storable(std::string_view part) {
  return part.size() <= kMostText && part.find(kSeparator) == std::string_view::npos;
}

// "[[15360, 4096], [4096, 24576], []]". A list of tensors, which is nested deeper, has no sizes.
std::optional<std::vector<std::vector<std::int64_t>>> sizes_of(std::string_view json) {
  std::vector<std::vector<std::int64_t>> tensors;
  int depth = 0;
  bool is_tensor = false;
  for (std::size_t at = 0; at < json.size(); ++at) {
    const char c = json[at];
    if (c == '[') {
      if (++depth == 2) {
        if (tensors.size() == kMostInputs) {
          return std::nullopt;
        }
        tensors.emplace_back();
        is_tensor = true;
      } else if (depth > 2) {
        tensors.back().clear();
        is_tensor = false;
      }
    } else if (c == ']') {
      --depth;
    } else if (c == '-' || (c >= '0' && c <= '9')) {
      const std::size_t end = std::min(json.find_first_of(", ]\n\r\t", at), json.size());
      const auto number = parse_whole(json.substr(at, end - at));
      if (!number || depth < 2 || (is_tensor && tensors.back().size() == kMostSizes)) {
        return std::nullopt;
      }
      if (is_tensor) {
        tensors.back().push_back(*number);
      }
      at = end - 1;
    } else if (c != ',' && static_cast<unsigned char>(c) > ' ') {
      return std::nullopt;
    }
    if (depth < 0) {
      return std::nullopt;
    }
  }
  return depth == 0 ? std::optional(std::move(tensors)) : std::nullopt;
}

// The texts in quotes; types and values of numbers have no escapes.
std::vector<std::string> quoted_in(std::string_view json) {
  std::vector<std::string> texts;
  std::size_t at = json.find('"');
  while (at != std::string_view::npos && texts.size() < kMostInputs) {
    const std::size_t end = json.find('"', at + 1);
    if (end == std::string_view::npos) {
      break;
    }
    texts.emplace_back(json.substr(at + 1, end - at - 1));
    at = json.find('"', end + 1);
  }
  return texts;
}

}  // namespace

bool has_kept_values(std::string_view op_name) {
  return op_name.find("attention") != std::string_view::npos &&
         std::find(std::begin(kAttentionOps), std::end(kAttentionOps), op_name) !=
             std::end(kAttentionOps);
}

bool has_kept_inputs(std::string_view op_name) {
  return std::find(std::begin(kKeptNames), std::end(kKeptNames), op_name) != std::end(kKeptNames) ||
         has_kept_values(op_name);
}

std::string product_inputs(std::string_view sizes_json, std::string_view types_json,
                           std::string_view values_json) {
  std::string text;
  if (!sizes_json.empty() && is_storable(sizes_json) && is_storable(types_json) &&
      is_storable(values_json)) {
    text = kProduct;
    for (const std::string_view part : {sizes_json, types_json, values_json}) {
      text.append(1, kSeparator).append(part);
    }
  }
  return text;
}

std::string message_inputs(const CollectiveMessage& message) {
  std::string text;
  if (!message.collective.empty() && is_storable(message.collective) &&
      is_storable(message.group) && is_storable(message.dtype)) {
    text = kMessage;
    for (const std::string& part :
         {message.collective, message.group, message.dtype, std::to_string(message.group_size),
          std::to_string(message.in_elements), std::to_string(message.out_elements)}) {
      text.append(1, kSeparator).append(part);
    }
  }
  return text;
}

std::optional<ProductInputs> product_of_inputs(std::string_view text) {
  const std::vector<std::string_view> parts = split(text, kSeparator);
  if (parts.size() != 4 || parts[0] != kProduct) {
    return std::nullopt;
  }
  auto sizes = sizes_of(parts[1]);
  if (!sizes) {
    return std::nullopt;
  }
  return ProductInputs{std::move(*sizes), quoted_in(parts[2]), quoted_in(parts[3])};
}

std::optional<CollectiveMessage> message_of_inputs(std::string_view text) {
  const std::vector<std::string_view> parts = split(text, kSeparator);
  if (parts.size() != 7 || parts[0] != kMessage) {
    return std::nullopt;
  }
  return CollectiveMessage{std::string(parts[1]),
                           std::string(parts[2]),
                           std::string(parts[3]),
                           parse_whole(parts[4]).value_or(0),
                           parse_whole(parts[5]).value_or(0),
                           parse_whole(parts[6]).value_or(0)};
}

}  // namespace gpuwhy
