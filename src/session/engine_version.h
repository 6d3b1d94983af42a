// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace llmprof {

// The inference or training engine of a program.
struct EngineName {
  std::string name;  // "vllm", "sglang", "tensorrt-llm", "transformers", "llama.cpp"; may be empty
  std::string version;  // empty: unknown
};

// The engine that a command line starts, and its version if exactly one is installed where the
// program comes from. `argv[0]` is a path. Starts nothing.
EngineName engine_of(const std::vector<std::string>& argv);

}  // namespace llmprof
