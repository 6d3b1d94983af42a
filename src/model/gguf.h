// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "base/json.h"
#include "model/tensors.h"

namespace llmprof {

// The front of a GGUF file: what it says of itself, and its tensors. Weights are not read.
struct GgufHeader {
  Json metadata;  // by key; long texts and lists are left out, of a list the length stays
  std::vector<TensorRecord> tensors;
  std::string format;  // the type most weights have, as "Q4_K"
};

// Throws kInput on anything but a whole header of version 2 or 3.
GgufHeader read_gguf(const std::filesystem::path& path);

// Its metadata in the words of a Hugging Face config.json. Throws kInput when the architecture is
// missing.
Json config_from_gguf(const GgufHeader& header);

}  // namespace llmprof
