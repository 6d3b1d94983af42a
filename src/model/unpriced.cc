// SPDX-License-Identifier: Apache-2.0
//
// Keys of a config.json that tell of parts a plain transformer does not have.
//
// A model type that is not known may be one of the many that differ from Llama in their name only.
// It may as well be a mixture of which a token uses a thirtieth, or keep no keys and values at all.
// Counting that as dense would be off by an order of magnitude, so one such key is enough to
// refuse. Words are matched instead of whole keys, because every family invents its own.
#include "model/unpriced.h"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/text.h"

namespace gpuwhy {
namespace {

struct PartWord {
  std::string_view word;
  std::string_view part;
};

// First match wins.
constexpr PartWord kWords[] = {
    {"mamba", "a state-space layer"},
    {"ssm", "a state-space layer"},
    {"state_size", "a state-space layer"},
    {"d_state", "a state-space layer"},
    {"time_step", "a state-space layer"},
    {"rwkv", "a recurrent layer"},
    {"recurrent", "a recurrent layer"},
    {"lru_width", "a recurrent layer"},
    {"conv_l_cache", "a convolution layer"},
    {"conv_kernel", "a convolution layer"},
    {"conv_dim", "a convolution layer"},
    {"d_conv", "a convolution layer"},
    {"linear_attn", "linear attention"},
    {"linear_attention", "linear attention"},
    {"linear_num_", "linear attention"},
    {"linear_key_", "linear attention"},
    {"linear_value_", "linear attention"},
    {"lightning", "linear attention"},
    {"delta", "linear attention"},
    {"full_attention_interval", "linear attention"},
    {"hybrid", "layers of several kinds"},
    {"block_type", "layers of several kinds"},
    {"attn_type_list", "layers of several kinds"},
    {"expert", "a mixture of experts"},
    {"moe", "a mixture of experts"},
    {"index_", "sparse attention"},
    {"indexer", "sparse attention"},
    {"sparse_att", "sparse attention"},
    {"compress", "compressed attention"},
    {"lora_rank", "latent attention"},
    {"latent", "a latent projection"},
    {"hc_mult", "several residual streams"},
    {"altup", "several residual streams"},
    {"laurel", "several residual streams"},
    {"per_layer_input", "inputs of each layer"},
    {"kv_shared", "layers that share keys and values"},
    {"kv_sharing", "layers that share keys and values"},
    {"k_eq_v", "keys that are values"},
    {"global_head_dim", "heads of several sizes"},
    {"swa_head_dim", "heads of several sizes"},
    {"swa_num_", "heads of several sizes"},
    {"block_configs", "layers of several sizes"},
};

constexpr std::size_t kMostKeysNamed = 3;

}  // namespace

std::string unpriced_reason(std::string_view model_type, const ConfigReader& reader) {
  std::string_view part;
  std::vector<std::string> named;
  const std::vector<std::string> keys = reader.set_keys();
  // The keys of the first part that is found; one part is reason enough.
  for (const PartWord& known : kWords) {
    if (!part.empty() && known.part != part) {
      continue;
    }
    for (const std::string& key : keys) {
      const bool is_new = std::find(named.begin(), named.end(), printable(key)) == named.end();
      if (is_new && named.size() < kMostKeysNamed &&
          to_lower(key).find(known.word) != std::string::npos) {
        part = known.part;
        named.push_back(printable(key));
      }
    }
  }
  return named.empty()
             ? ""
             : fmt::format("{}: {} ({}) has no cost model", printable(std::string(model_type)),
                           part, fmt::join(named, ", "));
}

}  // namespace gpuwhy
