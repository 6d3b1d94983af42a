// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/llm.h"

namespace gpuwhy {

// A tensor as the checkpoint's directory lists it.
struct TensorRecord {
  std::string name;
  std::int64_t elements = 0;  // as stored: packed formats have fewer than the weight
  std::int64_t bytes = 0;
  bool is_packed = false;  // integers that hold several weights, or scales that go with them
};

// The part of a tensor, by the naming of Hugging Face or GGUF; nullopt for tables that are
// computed, not learned (rotary frequencies).
std::optional<LlmPart> part_of_tensor(std::string_view name);

// Takes the stored bytes of each part from the directory, which is more reliable than any
// configuration, and whether the head is a separate tensor. Notes on `llm` say where directory and
// configuration disagree. Extra layers are ignored.
void apply_tensors(const std::vector<TensorRecord>& tensors, Llm& llm);

}  // namespace gpuwhy
