// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "analysis/analysis.h"
#include "model/efficiency_setup.h"

namespace gpuwhy {

// One or several forward passes, as recorded.
struct RecordedPasses {
  LlmWork work;
  std::int64_t start_ns = 0;
  std::int64_t duration_ns = 0;
  bool is_period = false;                 // duration_ns is from one step to the next
  std::uint32_t number = 0;               // StageStep::number
  std::optional<StepCounts> counts = {};  // the marker tells all sums: instead of `work`
};

// The passes of one stage.
struct StageWork {
  std::vector<RecordedPasses> passes;
  std::string reason;  // what is not known of some of them; then none can be used
};

// The passes of the stages whose cost can be known. Draft models are not: nobody names them.
struct RecordedWork {
  StageWork prefill;
  StageWork decode;
  StageWork mixed;
  StageWork verify;
};

// The work of the recorded stages: tokens, sequences and context of each finished instance, from
// marks and from `setup`.
RecordedWork recorded_work(const Analysis& analysis, const EfficiencySetup& setup);

}  // namespace gpuwhy
