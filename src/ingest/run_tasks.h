// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <vector>

namespace llmprof {

// Runs tasks on threads, in their order as far as threads are free; the first exception of any of
// them leaves here, after all have ended. There are at most as many threads as tasks, this one
// included, and fewer where the system gives no more.
void run_tasks(const std::vector<std::function<void()>>& tasks, unsigned num_threads);

}  // namespace llmprof
