// SPDX-License-Identifier: Apache-2.0
//
// Minimum compute and memory traffic of a language model: the numerators of MFU and MBU.
// Threads: see error.h.
#pragma once

#include <cstdint>
#include <string>

#include <gpuwhy/error.h>

namespace gpuwhy::api {

struct ModelFacts {
  std::string family;  // "llama", "deepseek_v2", ...
  std::int64_t params = 0;
  std::int64_t active_params = 0;  // what one token uses
  std::int64_t kv_bytes_per_token = 0;
  std::string weight_dtype;
};

struct WorkCost {
  std::int64_t flops = 0;
  std::int64_t bytes = 0;  // weights and keys and values; of experts the expectation
};

// A config.json or its folder, a GGUF, or safetensors. Throws Error, as the functions below do.
GPUWHY_API ModelFacts model_facts(const std::string& path);

// `tokens` read at once by each of `batch` sequences.
GPUWHY_API WorkCost prefill_cost(const std::string& path, std::int64_t tokens,
                                 std::int64_t batch = 1);

// One step in which each of `batch` sequences attends to `context` tokens, its new one included.
GPUWHY_API WorkCost decode_cost(const std::string& path, std::int64_t context,
                                std::int64_t batch = 1);

}  // namespace gpuwhy::api
