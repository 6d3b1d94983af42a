// SPDX-License-Identifier: Apache-2.0
//
// Marks of a recording in the form that gates need: connects trace/ and capture/, which do not know
// each other.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "capture/trigger.h"
#include "trace/trace.h"

namespace gpuwhy {

// Every range of a recording by domain and name, the most frequent first. A recording does not say
// whether strings were registered: false.
std::vector<SeenMark> seen_marks(const Trace& trace);

// The marks of `stages`, one per stage; nullopt if a stage has none (engines write a new text for
// each step).
std::optional<std::vector<SeenMark>> marks_of_stages(const std::vector<std::string>& stages,
                                                     const std::vector<SeenMark>& seen);

}  // namespace gpuwhy
