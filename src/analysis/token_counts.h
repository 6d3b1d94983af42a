// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "analysis/efficiency.h"

namespace llmprof {

// A forward pass or several, as the recording shows them.
struct RecordedPasses {
  LlmWork work;
  std::int64_t start_ns = 0;
  std::int64_t duration_ns = 0;
};

struct StageWork {
  std::vector<RecordedPasses> passes;
  std::string reason;  // what is not known of some of them; then none can be used
};

struct RecordedWork {
  StageWork prefill;
  StageWork decode;
};

// What the stages of a recording computed: tokens, sequences and contexts of each instance that
// ended, from marks and from `setup`.
RecordedWork recorded_work(const Analysis& analysis, const EfficiencySetup& setup);

}  // namespace llmprof
