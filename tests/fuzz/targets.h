// SPDX-License-Identifier: Apache-2.0
//
// One function an input that comes from strangers. Each reads `bytes` as that input; a kInput or
// kUsage error is an answer, anything else that leaves it is a defect, as is a sum that does not
// add up.
#pragma once

#include <span>
#include <string_view>

namespace llmprof {

struct FuzzTarget {
  const char* name;
  void (*run)(std::string_view bytes);
};
std::span<const FuzzTarget> fuzz_targets();

}  // namespace llmprof
