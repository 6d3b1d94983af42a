// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>

namespace gpuwhy {

struct Analysis;

// What a recording shows of the program, so that advice fits it.
struct Workload {
  bool is_pytorch = false;
  bool is_amd = false;
  std::string engine;  // "vllm", "sglang", ...; empty: none is known
};

// Whether a name has one of these words.
bool has_one_of(std::string_view name, std::initializer_list<std::string_view> words);

Workload workload_of(const Analysis& analysis);

}  // namespace gpuwhy
