// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "model/llm.h"

namespace llmprof {

// What another tool's formula gives for the same work, and why it is not ours.
struct ConventionRow {
  std::string tool;
  std::string quantity;  // "prefill FLOPs", "decode FLOPs", "decode bytes"
  double theirs = 0;
  double ours = 0;
  std::string because;

  double difference_fraction() const { return theirs / ours - 1; }
};

// All formulas that speak about prefilling `tokens` and a decode step of one sequence at `context`.
std::vector<ConventionRow> compare_conventions(const Llm& llm, std::int64_t tokens,
                                               std::int64_t context);

}  // namespace llmprof
