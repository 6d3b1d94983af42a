// SPDX-License-Identifier: Apache-2.0
//
// What a stage of an engine is for.
#pragma once

#include <cstdint>

#include "results/row.h"

namespace gpuwhy {

// By the name, which a mark of a user may have too: it then means the same.
enum class StageRole : std::uint8_t {
  kOther,  // of no engine, or no stage at all
  kPrefill,
  kDecode,      // steps, or the loop around them
  kDecodeStep,  // inside such a loop
  kMixed,
  kVerify,
  kDraft,
  kStep,
  kWarmUp,
  kIdle,
  kGraphCapture
};
StageRole role_of(const RowName& row);

// Whether it makes one token per sequence: a step, or a loop of them.
bool is_decode(const RowName& row);
// No stage of the workload: none is marked, an engine captures its graphs or warms up, or a rank
// has no requests.
bool is_without_work(const RowName& row);

}  // namespace gpuwhy
