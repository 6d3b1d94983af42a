// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace gpuwhy {

struct Analysis;

// What a recording shows of the program, so that advice fits it.
struct Workload {
  bool is_pytorch = false;
  bool is_amd = false;
  std::string engine;  // "vllm", "sglang", ...; empty: none is known
};

Workload workload_of(const Analysis& analysis);

}  // namespace gpuwhy
