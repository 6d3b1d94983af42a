// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>

#include "analysis/stages/stages.h"
#include "trace/trace.h"

namespace gpuwhy {

// True for names such as "warmup", "model|warm-up|forward" and "warm_up 3".
bool is_warm_up_name(std::string_view name);

// When the last range ends that the program itself calls warm-up, or that is marked as the stage
// warmup; INT64_MIN if there is none.
std::int64_t warm_up_end_ns(const Trace& trace, const Stages& stages);

}  // namespace gpuwhy
