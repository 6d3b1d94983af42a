// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>

#include "model/llm.h"

namespace llmprof {

// A model from whatever of it lies on disk: a config.json, a directory that has one (and perhaps
// .safetensors files), a .gguf, a .safetensors or its index beside a config.json. Throws kInput,
// naming the file.
Llm load_llm(const std::filesystem::path& path);

}  // namespace llmprof
