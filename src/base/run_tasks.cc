// SPDX-License-Identifier: Apache-2.0
//
// Execution of a list of tasks on several threads.
#include "base/run_tasks.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>

namespace gpuwhy {

void run_tasks(const std::vector<std::function<void()>>& tasks, unsigned num_threads) {
  std::atomic<std::size_t> next{0};
  std::exception_ptr failure;
  std::size_t failed = tasks.size();
  std::mutex failure_mutex;
  // After a failure no further task is started.
  const auto work = [&] {
    for (std::size_t i = next++; i < tasks.size(); i = next++) {
      try {
        tasks[i]();
      } catch (...) {
        const std::lock_guard lock(failure_mutex);
        if (i < failed) {
          failed = i;
          failure = std::current_exception();
        }
        next = tasks.size();
      }
    }
  };
  {
    std::vector<std::jthread> threads;  // each is joined at the end of this block
    const std::size_t wanted = std::min<std::size_t>(num_threads, tasks.size());
    threads.reserve(wanted);
    try {
      while (threads.size() + 1 < wanted) {
        threads.emplace_back(work);
      }
    } catch (const std::system_error&) {
      // No more threads available: the existing ones do all the work.
    }
    work();
  }
  if (failure) {
    std::rethrow_exception(failure);
  }
}

}  // namespace gpuwhy
