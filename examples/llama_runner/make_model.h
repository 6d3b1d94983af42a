// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace llama_runner {

// Writes a model with random weights as GGUF. Its folder is made; the file appears when it is
// whole. `tokenizer` is none, spm or empty for the preset's own. Returns a line that says what was
// made. Throws std::runtime_error.
std::string make_model(const std::string& preset, const std::string& path,
                       const std::string& tokenizer);

}  // namespace llama_runner
