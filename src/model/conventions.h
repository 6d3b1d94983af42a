// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "model/llm.h"

namespace gpuwhy {

// The result of another tool's formula for the same work, and the reason for the difference.
struct ConventionRow {
  std::string tool;
  std::string quantity;  // "prefill FLOPs", "decode FLOPs", "decode bytes"
  double theirs = 0;
  double ours = 0;
  std::string because;

  double difference_fraction() const { return theirs / ours - 1; }
};

// All formulas that cover prefill of `tokens`, or a decode step of one sequence at `context`.
std::vector<ConventionRow> compare_conventions(const Llm& llm, std::int64_t tokens,
                                               std::int64_t context);

}  // namespace gpuwhy
