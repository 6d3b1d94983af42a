// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>

#include "model/llm.h"

namespace gpuwhy {

// Loads a model from a config.json, a directory with one (and perhaps .safetensors files), a .gguf
// file, or a .safetensors file or its index next to a config.json. Throws kInput, naming the file.
Llm load_llm(const std::filesystem::path& path);

}  // namespace gpuwhy
