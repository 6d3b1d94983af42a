// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <vector>

namespace gpuwhy {

// Runs tasks on several threads, started in order. After all threads have ended it rethrows the
// exception of the first task in the list that failed, so errors do not depend on the number of
// threads. Uses at most as many threads as tasks, including the calling one, and fewer if the
// system refuses.
void run_tasks(const std::vector<std::function<void()>>& tasks, unsigned num_threads);

}  // namespace gpuwhy
