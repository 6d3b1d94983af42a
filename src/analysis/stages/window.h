// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "analysis/names/rules.h"
#include "analysis/stages/window_options.h"
#include "trace/trace.h"

namespace gpuwhy {

// Throws kUsage if they contradict each other.
void check_window(const WindowOptions& options);

// Leaves only the window in the trace, and notes it in trace.capture. What stays:
//   - GPU work that begins in the window
//   - calls, ranges and operators that overlap it, and calls that launched the work
// With `steps`, a thread that marks steps keeps only the chosen ones. Throws kUsage if the window
// is not in the recording, or no GPU work begins in it.
void apply_window(const WindowOptions& options, const Rules& rules, Trace& trace);

}  // namespace gpuwhy
