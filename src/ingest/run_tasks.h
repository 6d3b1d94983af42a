// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <vector>

namespace llmprof {

// Runs tasks on several threads, started in order. Rethrows the first exception after all threads
// have ended. Uses at most as many threads as tasks, including the calling one, and fewer if the
// system refuses.
void run_tasks(const std::vector<std::function<void()>>& tasks, unsigned num_threads);

}  // namespace llmprof
