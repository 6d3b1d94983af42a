// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trace/trace.h"

namespace gpuwhy {

// Adds a diagnostic, kernels_overlap, if kernels of one stream run at the same time for more than a
// hundredth of all kernel time: their times cannot be right.
void add_overlaps(const Trace& trace, Diagnostics& diagnostics);

}  // namespace gpuwhy
