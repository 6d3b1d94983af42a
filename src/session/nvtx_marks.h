// SPDX-License-Identifier: Apache-2.0
//
// Marks of a recording as gates want them: between trace/ and capture/, which do not know each
// other.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "capture/gate.h"
#include "trace/trace.h"

namespace llmprof {

// Every range of a recording by domain and name, the most frequent first. Whether strings were
// registered is not in a recording: false.
std::vector<SeenMark> seen_marks(const Trace& trace);

// The marks that stand for `stages`, one a stage; nothing when a stage has none of its own (engines
// write a new text each step).
std::optional<std::vector<SeenMark>> marks_of_stages(const std::vector<std::string>& stages,
                                                     const std::vector<SeenMark>& seen);

}  // namespace llmprof
