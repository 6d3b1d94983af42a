// SPDX-License-Identifier: Apache-2.0
//
// Fuzz targets: one function per untrusted input. Each reads `bytes` as that input and says
// whether they were one; a kInput or kUsage error is an answer, anything else that leaves it is a
// defect, as is a sum that does not add up.
#pragma once

#include <span>
#include <string_view>

namespace llmprof {

struct FuzzTarget {
  const char* name;
  bool (*run)(std::string_view bytes);  // false: refused
};
std::span<const FuzzTarget> fuzz_targets();

}  // namespace llmprof
