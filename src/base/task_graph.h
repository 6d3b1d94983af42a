// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>
#include <initializer_list>
#include <vector>

#include "base/pass_timer.h"

namespace gpuwhy {

// Tasks that need others, on several threads. A task starts when what it needs is done, and never
// where that failed: none waits while it runs, so a failure anywhere ends the run.
class TaskGraph {
 public:
  // A task of this graph.
  struct Task {
    std::size_t place = 0;
  };

  // `timer`, if there is one, learns how long each task took, in the order of adding.
  explicit TaskGraph(PassTimer* timer = nullptr) : timer_(timer) {}

  Task add(const char* name, std::initializer_list<Task> after, std::function<void()> work);

  // Of the tasks that are ready, the one that was added first starts first. After all threads have
  // ended it rethrows the failure of the first task in the order of adding, so errors do not depend
  // on the number of threads. Uses at most as many threads as tasks, including the calling one, and
  // fewer if the system refuses.
  void run(unsigned num_threads) const;

 private:
  class Run;
  struct Node {
    const char* name;
    std::size_t num_needs;
    std::vector<std::size_t> needed_by;
    std::function<void()> work;
  };

  PassTimer* timer_;
  std::vector<Node> nodes_;
};

// Runs tasks that need no others.
void run_tasks(const std::vector<std::function<void()>>& tasks, unsigned num_threads);

}  // namespace gpuwhy
