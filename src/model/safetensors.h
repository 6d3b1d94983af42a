// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <vector>

#include "model/stored_bytes.h"

namespace gpuwhy {

// The directory of one .safetensors file. Weights are not read. Throws kInput.
std::vector<TensorRecord> read_safetensors(const std::filesystem::path& path);

// The same for all files named in a model.safetensors.index.json, which must be in the same folder.
std::vector<TensorRecord> read_safetensors_index(const std::filesystem::path& index);

}  // namespace gpuwhy
