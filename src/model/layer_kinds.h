// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "model/config_reader.h"
#include "model/families.h"
#include "model/llm.h"

namespace gpuwhy {

enum class LayerKind : std::uint8_t { kFull, kShort, kState, kMlp, kExperts };

// The kind of each layer as a configuration lists them; empty if it leaves that to the family.
// Throws kInput if a list is not as long as the model.
struct LayerKinds {
  std::vector<LayerKind> kinds;
  std::string unknown;  // a kind that is not known: the model has no cost then
};
LayerKinds layer_kinds(const ConfigReader& reader, const ModelFamily& family);

// The sizes of layers that keep a state. Throws kInput if one is missing.
StateShape state_of(const ConfigReader& reader, StateKind kind, const Llm& llm);

}  // namespace gpuwhy
