// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "base/json.h"
#include "model/stored_bytes.h"

namespace gpuwhy {

// The header of a GGUF file: metadata and tensors. Weights are not read.
struct GgufHeader {
  Json metadata;  // by key; long texts and lists are omitted, of a list the length is kept
  std::vector<TensorRecord> tensors;
  std::string format;  // the type most weights have, as "Q4_K"
};

// Throws kInput for anything but a complete header of version 2 or 3.
GgufHeader read_gguf(const std::filesystem::path& path);

// The metadata with the keys of a Hugging Face config.json. Throws kInput if the architecture is
// missing.
Json config_from_gguf(const GgufHeader& header);

}  // namespace gpuwhy
