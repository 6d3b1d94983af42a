// SPDX-License-Identifier: Apache-2.0
//
// Timing of single operators by layer, through a callback of ggml's scheduler.
//
// The scheduler asks before every node of a graph whether the callback wants its result. If so, it
// computes the node alone and synchronizes after it. The time between question and answer is the
// operator's. That costs about a microsecond per operator and prevents all overlap, so these times
// show where time goes, not how long a step takes: the timed passes run without it.
//
// FLOPs are those of matrix products, two a multiply-add, as they are executed: attention over the
// whole padded cache. Bytes are what an operator reads and writes if nothing stays in a cache; of
// experts, at most those that its tokens can choose. Where shapes do not tell, the cell is empty.
//
// What it gets wrong: a node without a layer of its own in name or weights is given to the layer of
// the node before it, which holds because graphs are built layer by layer.
#include "operators.h"

#include <algorithm>
#include <cstring>
#include <string_view>

#include <ggml-backend.h>
#include <ggml.h>

namespace llama_runner {
namespace {

bool is_free(const ggml_tensor& tensor) {
  return tensor.op == GGML_OP_NONE || tensor.op == GGML_OP_RESHAPE || tensor.op == GGML_OP_VIEW ||
         tensor.op == GGML_OP_PERMUTE || tensor.op == GGML_OP_TRANSPOSE || ggml_is_empty(&tensor);
}

bool is_number(std::string_view text) {
  return !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
}

// "ffn_out-3 (view)" is ffn_out of layer 3, "cache_k_l3" is cache_k of it; "node_17" is a number
// that ggml gave, no name.
struct NodeName {
  std::string base;
  std::string layer;
};

NodeName name_of(const ggml_tensor& tensor) {
  std::string_view text = tensor.name;
  text = text.substr(0, text.find(" ("));
  if (text.starts_with("node_") && is_number(text.substr(5))) {
    return {};
  }
  const std::size_t dash = text.rfind('-');
  if (dash != std::string_view::npos && is_number(text.substr(dash + 1))) {
    return {std::string(text.substr(0, dash)), std::string(text.substr(dash + 1))};
  }
  if (text.starts_with("cache_") && is_number(text.substr(std::min<std::size_t>(9, text.size())))) {
    return {std::string(text.substr(0, 7)), std::string(text.substr(9))};
  }
  return {std::string(text), ""};
}

// The layer in the name of a weight or of a cache: "blk.3.ffn_up.weight", "cache_k_l3".
std::string layer_in(std::string_view name) {
  for (const std::string_view before : {"blk.", "cache_k_l", "cache_v_l"}) {
    if (name.starts_with(before)) {
      const std::string_view rest = name.substr(before.size());
      const std::string_view digits =
          rest.substr(0, std::min(rest.find_first_not_of("0123456789"), rest.size()));
      if (!digits.empty()) {
        return std::string(digits);
      }
    }
  }
  return "";
}

bool is_weight(const ggml_tensor& tensor) {
  return std::string_view(tensor.name).ends_with(".weight") ||
         std::string_view(tensor.name).ends_with(".bias");
}

std::int64_t row_bytes(const ggml_tensor& tensor) {
  return static_cast<std::int64_t>(ggml_row_size(tensor.type, tensor.ne[0]));
}

// Not ggml_nbytes: of a view that would be the whole stretch it lies in.
std::int64_t bytes_of(const ggml_tensor& tensor) {
  return row_bytes(tensor) * ggml_nrows(&tensor);
}

std::optional<std::int64_t> flops_of(const ggml_tensor& tensor) {
  const ggml_tensor* first = tensor.src[0];
  switch (tensor.op) {
    case GGML_OP_MUL_MAT:
    case GGML_OP_MUL_MAT_ID:
      return 2 * first->ne[0] * ggml_nelements(&tensor);
    case GGML_OP_FLASH_ATTN_EXT: {
      const ggml_tensor* keys = tensor.src[1];
      const ggml_tensor* values = tensor.src[2];
      return 2 * first->ne[1] * first->ne[2] * first->ne[3] * keys->ne[1] *
             (keys->ne[0] + values->ne[0]);
    }
    default:
      return std::nullopt;
  }
}

std::int64_t moved_bytes(const ggml_tensor& tensor) {
  if (tensor.op == GGML_OP_GET_ROWS) {
    return row_bytes(*tensor.src[0]) * ggml_nrows(&tensor) + bytes_of(tensor);
  }
  if (tensor.op == GGML_OP_SET_ROWS) {  // its result is the whole table
    return bytes_of(*tensor.src[0]) + row_bytes(tensor) * ggml_nrows(tensor.src[0]);
  }
  std::int64_t bytes = bytes_of(tensor);
  for (const ggml_tensor* source : tensor.src) {
    if (source == nullptr) {
      continue;
    }
    if (tensor.op == GGML_OP_MUL_MAT_ID && source == tensor.src[0]) {
      const std::int64_t chosen = std::min(source->ne[2], ggml_nelements(tensor.src[2]));
      bytes += bytes_of(*source) / source->ne[2] * chosen;
    } else {
      bytes += bytes_of(*source);
    }
  }
  return bytes;
}

std::string shape_text(const ggml_tensor& tensor) {
  std::string text = ggml_type_name(tensor.type);
  for (int i = 0; i < ggml_n_dims(&tensor); ++i) {
    text += (i == 0 ? " " : "x") + std::to_string(tensor.ne[i]);
  }
  return text;
}

std::string weights_of(const ggml_tensor& tensor) {
  std::string names;
  for (const ggml_tensor* source : tensor.src) {
    if (source != nullptr && is_weight(*source)) {
      names += (names.empty() ? "" : " ") + std::string(source->name);
    }
  }
  return names;
}

std::string layer_of_sources(const ggml_tensor& tensor) {
  for (const ggml_tensor* source : tensor.src) {
    if (source == nullptr) {
      continue;
    }
    std::string layer = layer_in(source->name);
    if (layer.empty() && !is_weight(*source)) {
      layer = name_of(*source).layer;
    }
    if (!layer.empty()) {
      return layer;
    }
  }
  return "";
}

// Nodes before the first layer and after the last one belong to none.
bool is_outside_layers(const std::string& base) {
  return base.starts_with("result_") || base.starts_with("inp_") || base == "norm" ||
         base == "embd";
}

// "attn_q_a" of "blk.3.attn_q_a.weight": graphs give several products one name, weights have their
// own.
std::string weight_stem(std::string_view name) {
  if (const std::string layer = layer_in(name); !layer.empty()) {
    name.remove_prefix(5 + layer.size());  // "blk." and the dot behind the number
  }
  return std::string(name.substr(0, name.rfind('.')));
}

}  // namespace

bool OperatorTimer::callback(ggml_tensor* tensor, bool is_asking, void* self) {
  OperatorTimer& timer = *static_cast<OperatorTimer*>(self);
  const Clock::time_point now = Clock::now();
  if (!timer.is_on_) {
    return false;
  }
  if (is_asking) {
    const bool is_wanted = !is_free(*tensor);
    timer.op_start_ = Clock::now();
    timer.own_ += timer.op_start_ - now;
    return is_wanted;
  }
  timer.add(*tensor, std::chrono::nanoseconds(now - timer.op_start_).count());
  timer.own_ += Clock::now() - now;
  return true;
}

void OperatorTimer::add(const ggml_tensor& tensor, std::int64_t ns) {
  NodeName name = name_of(tensor);
  if (name.layer.empty() && !is_outside_layers(name.base)) {
    name.layer = layer_of_sources(tensor);
    name.layer = name.layer.empty() ? layer_ : name.layer;
  }
  layer_ = name.layer;
  for (const ggml_tensor* source : tensor.src) {
    if (source != nullptr && is_weight(*source) && !name.base.starts_with("result_")) {
      name.base = weight_stem(source->name);
    }
  }
  Total& total = totals_[{stage_, ggml_op_desc(&tensor), name.base, name.layer}];
  if (total.calls++ == 0) {
    total.weights = weights_of(tensor);
    total.backend = tensor.buffer != nullptr ? ggml_backend_buffer_name(tensor.buffer) : "";
  }
  total.ns += ns;
  total.shape = shape_text(tensor);
  total.bytes += moved_bytes(tensor);
  if (const auto flops = flops_of(tensor)) {
    total.flops = total.flops.value_or(0) + *flops;
  }
}

void OperatorTimer::begin_stage(const char* stage) {
  stage_ = stage;
  layer_.clear();
  own_ = {};
  stage_start_ = Clock::now();
}

void OperatorTimer::end_stage() {
  if (is_on_) {
    Stage& stage = stages_[stage_];
    ++stage.passes;
    stage.ns += std::chrono::nanoseconds(Clock::now() - stage_start_ - own_).count();
  }
}

std::string OperatorTimer::csv() const {
  std::string text = "kind,stage,op,name,layer,calls,total_ns,flops,bytes,weights,shape,backend\n";
  for (const auto& [name, stage] : stages_) {
    text += "stage," + name + ",,,," + std::to_string(stage.passes) + "," +
            std::to_string(stage.ns) + ",,,,,\n";
  }
  for (const auto& [key, total] : totals_) {
    text += "operator," + key.stage + "," + key.op + "," + key.name + "," + key.layer + "," +
            std::to_string(total.calls) + "," + std::to_string(total.ns) + "," +
            (total.flops ? std::to_string(*total.flops) : "") + "," + std::to_string(total.bytes) +
            "," + total.weights + "," + total.shape + "," + total.backend + "\n";
  }
  return text;
}

}  // namespace llama_runner
