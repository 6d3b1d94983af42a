// SPDX-License-Identifier: Apache-2.0
//
// Fuzz targets: one function per untrusted input. Each reads `bytes` as that input and says
// whether they were one; a kInput or kUsage error is an answer, anything else that leaves it is a
// defect, as is a sum that does not add up.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "fuzz/random.h"

namespace gpuwhy {

// structure.h describes both; null where random bytes do well enough.
using StructuralChange = std::optional<std::string> (*)(std::string_view bytes,
                                                        std::size_t num_bytes, Random& random);

struct FuzzTarget {
  const char* name;
  bool (*run)(std::string_view bytes);  // false: refused
  StructuralChange changed = nullptr;
  StructuralChange grown = nullptr;
};
std::span<const FuzzTarget> fuzz_targets();

}  // namespace gpuwhy
