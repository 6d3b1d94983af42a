// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <vector>

namespace llmprof {

// Runs tasks on threads, in their order as far as threads are free; the first exception of any of
// them leaves here, after all have ended.
void run_tasks(const std::vector<std::function<void()>>& tasks, unsigned num_threads);

}  // namespace llmprof
