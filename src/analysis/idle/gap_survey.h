// SPDX-License-Identifier: Apache-2.0
//
// What must be known of all gaps of a GPU before the first one is counted.
#pragma once

#include <cstdint>
#include <vector>

#include "analysis/idle/gaps.h"
#include "analysis/idle/idle_causes.h"
#include "analysis/idle/wait_calls.h"

namespace gpuwhy {

// A gap in which the GPU ran what was not recorded.
struct UnrecordedGap {
  std::int64_t start_ns = 0;
  std::int64_t end_ns = 0;
  std::int64_t before_ns = 0;  // the launching thread waited this long in the gaps before
};

struct GapSurvey {
  std::vector<UnrecordedGap> unrecorded;  // in time order; none where no thread launches
  // When nine tenths of the time that late launches cost the GPU have passed; INT64_MIN: never.
  std::int64_t late_until_ns = INT64_MIN;
};

// Walks over all gaps. Those that are long enough to ask what the host did are given to `causes`.
GapSurvey survey_gaps(const SweptWork& work, const GapJudge& judge, const WaitCalls& waits,
                      std::uint32_t launcher, IdleCauses& causes);

}  // namespace gpuwhy
