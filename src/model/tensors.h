// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/llm.h"

namespace llmprof {

// A tensor of a checkpoint, as its directory lists it.
struct TensorRecord {
  std::string name;
  std::int64_t elements = 0;  // as stored: packed formats have fewer than the weight
  std::int64_t bytes = 0;
  bool is_packed = false;  // integers that hold several weights, or scales that go with them
};

// The part a tensor belongs to, by the names of Hugging Face and of GGUF; nothing for tables that
// are computed and not learned (rotation frequencies).
std::optional<LlmPart> part_of_tensor(std::string_view name);

// Takes the stored bytes of each part from the directory, which knows better than any
// configuration, and whether the head is a tensor of its own. Notes on `llm` say where the
// directory and the configuration disagree. Layers beyond the model's are left out.
void apply_tensors(const std::vector<TensorRecord>& tensors, Llm& llm);

}  // namespace llmprof
