// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "results/efficiency.h"

namespace gpuwhy {

// One decode step.
struct StepSample {
  std::int64_t start_ns = 0;
  std::int64_t duration_ns = 0;
  double tokens = 0;     // made in the step
  double kv_tokens = 0;  // attended to, all sequences
  std::int64_t number = 0;
};

// Least squares over the steps, excluding outliers once. nullopt, with `reason`, if there are too
// few. The first step is excluded, because a capture that begins with it stretches it.
std::optional<StepFit> fit_steps(const std::vector<StepSample>& steps, std::string& reason);

}  // namespace gpuwhy
