// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "results/latency.h"

namespace gpuwhy {

struct Analysis;

// From the pass without a profiler where its marks cover the GPU work, else from the recording.
Latencies latencies_of(const Analysis& analysis);

}  // namespace gpuwhy
