// SPDX-License-Identifier: Apache-2.0
//
// Kinds of a hybrid model's layers, and the sizes of those that keep a state.
//
// There are as many ways to write down which layer is which as there are hybrids: a list of words,
// a string of letters, a list of flags, two lists of layers counted from 1, an interval, a period
// with an offset. Each is read where its family uses it.
#include "model/layer_kinds.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/error.h"
#include "base/text.h"
#include "model/dtype_width.h"

namespace gpuwhy {
namespace {

struct KindName {
  std::string_view name;
  LayerKind kind;
};

constexpr KindName kNames[] = {
    {"full_attention", LayerKind::kFull},
    {"attention", LayerKind::kFull},
    {"sliding_attention", LayerKind::kShort},
    {"chunked_attention", LayerKind::kShort},
    {"linear_attention", LayerKind::kState},
    {"mamba", LayerKind::kState},
    {"mlp", LayerKind::kMlp},
    {"moe", LayerKind::kExperts},
    // Nemotron's letters.
    {"*", LayerKind::kFull},
    {"M", LayerKind::kState},
    {"-", LayerKind::kMlp},
    {"E", LayerKind::kExperts},
};

void add_named(std::string_view name, LayerKinds& result) {
  const auto* const found =
      std::ranges::find_if(kNames, [&](const KindName& known) { return known.name == name; });
  if (found == std::end(kNames)) {
    result.unknown = printable(std::string(name));
    return;
  }
  result.kinds.push_back(found->kind);
}

void add_flags(const ConfigReader& reader, const char* key, LayerKind of_zero, LayerKind of_one,
               LayerKinds& result) {
  for (const std::int64_t flag : reader.sizes(key, {})) {
    result.kinds.push_back(flag == 0 ? of_zero : of_one);
  }
}

// Layers by a rule instead of a list.
void add_by_rule(const ConfigReader& reader, StateKind kind, std::int64_t num_layers,
                 LayerKinds& result) {
  const ConfigReader lists(reader.object("linear_attn_config"), "linear_attn_config");
  const auto attending = lists.sizes("full_attn_layers", {});
  for (std::int64_t i = 0; i < num_layers; ++i) {
    bool attends = false;
    if (kind == StateKind::kKimiDelta) {  // counted from 1
      attends = std::find(attending.begin(), attending.end(), i + 1) != attending.end();
    } else if (kind == StateKind::kMamba1) {
      const std::int64_t period = reader.size({"attn_layer_period"});
      attends = i % period == reader.count("attn_layer_offset", 0);
    } else {
      attends = (i + 1) % reader.size({"full_attention_interval"}, 4) == 0;
    }
    result.kinds.push_back(attends ? LayerKind::kFull : LayerKind::kState);
  }
}

// The width of a state, if the configuration names its type.
std::optional<StoredWidth> state_width(const ConfigReader& reader) {
  for (const char* key : {"mamba_ssm_dtype", "mamba_ssm_cache_dtype"}) {
    if (const std::string dtype = reader.text(key, ""); !dtype.empty()) {
      return width_of(dtype);
    }
  }
  return std::nullopt;
}

void read_gated_delta(const ConfigReader& reader, StateShape& state) {
  state.key_heads = reader.size({"linear_num_key_heads"});
  state.value_heads = reader.size({"linear_num_value_heads"});
  state.key_dim = reader.size({"linear_key_head_dim"});
  state.value_dim = reader.size({"linear_value_head_dim"});
  state.conv_kernel = reader.size({"linear_conv_kernel_dim"}, 4);
}

void read_kimi_delta(const ConfigReader& reader, StateShape& state) {
  const ConfigReader nested(reader.object("linear_attn_config"), "linear_attn_config");
  state.key_heads = state.value_heads = nested.size({"num_heads"});
  state.key_dim = state.value_dim = nested.size({"head_dim"});
  state.conv_kernel = nested.size({"short_conv_kernel_size"}, 4);
  state.has_full_rank_gate = nested.flag("use_full_rank_gate", false);
  state.state_width = {1, 4};
}

void read_second_mamba(const ConfigReader& reader, StateShape& state) {
  state.value_heads = reader.size({"mamba_num_heads", "mamba_n_heads"});
  state.value_dim = reader.size({"mamba_head_dim", "mamba_d_head"});
  state.key_heads = reader.size({"n_groups", "mamba_n_groups"}, 1);
  state.key_dim = reader.size({"ssm_state_size", "mamba_d_state"});
  state.conv_kernel = reader.size({"conv_kernel", "mamba_d_conv"}, 4);
  state.has_conv_bias = reader.flag("use_conv_bias", reader.flag("mamba_conv_bias", true));
  state.has_gated_norm = reader.flag("mamba_rms_norm", !reader.has("mamba_d_ssm"));
}

void read_first_mamba(const ConfigReader& reader, std::int64_t hidden, StateShape& state) {
  state.value_heads = (Count(reader.size({"mamba_expand"}, 2)) * hidden).value();
  state.value_dim = 1;
  state.key_heads = 1;
  state.key_dim = reader.size({"mamba_d_state"}, 16);
  state.conv_kernel = reader.size({"mamba_d_conv"}, 4);
  state.time_step_rank = reader.size({"mamba_dt_rank"}, (hidden + 15) / 16);
  state.has_conv_bias = reader.flag("mamba_conv_bias", true);
}

}  // namespace

LayerKinds layer_kinds(const ConfigReader& reader, const ModelFamily& family) {
  const auto told = reader.find_size({"num_hidden_layers", "n_layer", "n_layers"});
  LayerKinds result;
  const char* source = "layer_types";
  for (const char* key : {"layer_types", "layers_block_type"}) {
    for (const std::string& name : reader.texts(key)) {
      add_named(name, result);
    }
    if (!result.kinds.empty() || !result.unknown.empty()) {
      source = key;
      break;
    }
  }
  if (result.kinds.empty() && reader.has("hybrid_override_pattern")) {
    source = "hybrid_override_pattern";
    for (const char letter : reader.text(source, "")) {
      add_named(std::string_view(&letter, 1), result);
    }
  } else if (result.kinds.empty() && reader.has("hybrid_layer_pattern")) {
    source = "hybrid_layer_pattern";
    add_flags(reader, source, LayerKind::kFull, LayerKind::kShort, result);
  } else if (result.kinds.empty() && reader.has("attn_type_list")) {
    source = "attn_type_list";
    add_flags(reader, source, LayerKind::kState, LayerKind::kFull, result);
  } else if (result.kinds.empty() && family.state && !family.is_parallel_state && told) {
    add_by_rule(reader, *family.state, *told, result);
  }
  const auto num_kinds = static_cast<std::int64_t>(result.kinds.size());
  if (result.unknown.empty() && told && num_kinds > 0 && num_kinds != *told) {
    throw Error(ErrorKind::kInput,
                fmt::format("{} has {} entries for {} layers", source, num_kinds, *told));
  }
  return result;
}

StateShape state_of(const ConfigReader& reader, StateKind kind, const Llm& llm) {
  StateShape state;
  state.kind = kind;
  state.state_width = llm.kv_width;
  switch (kind) {
    case StateKind::kGatedDelta:
      read_gated_delta(reader, state);
      break;
    case StateKind::kKimiDelta:
      read_kimi_delta(reader, state);
      break;
    case StateKind::kMamba2:
      read_second_mamba(reader, state);
      break;
    case StateKind::kMamba1:
      read_first_mamba(reader, llm.hidden, state);
      break;
    case StateKind::kLightning:
      state.key_heads = state.value_heads = llm.heads;
      state.key_dim = state.value_dim = llm.head_dim;
      break;
  }
  state.state_width = state_width(reader).value_or(state.state_width);
  if (state.key_heads > state.value_heads) {
    throw Error(ErrorKind::kInput,
                fmt::format("{} key heads of the state are more than its {} heads", state.key_heads,
                            state.value_heads));
  }
  return state;
}

}  // namespace gpuwhy
