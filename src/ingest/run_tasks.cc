// SPDX-License-Identifier: Apache-2.0
#include "ingest/run_tasks.h"

#include <atomic>
#include <exception>
#include <mutex>
#include <thread>

namespace llmprof {

void run_tasks(const std::vector<std::function<void()>>& tasks, unsigned num_threads) {
  std::atomic<std::size_t> next{0};
  std::exception_ptr failure;
  std::mutex failure_mutex;
  const auto work = [&] {
    for (std::size_t i = next++; i < tasks.size(); i = next++) {
      try {
        tasks[i]();
      } catch (...) {
        const std::lock_guard lock(failure_mutex);
        failure = failure ? failure : std::current_exception();
        next = tasks.size();
      }
    }
  };
  std::vector<std::thread> threads;
  for (unsigned i = 1; i < num_threads; ++i) {
    threads.emplace_back(work);
  }
  work();
  for (std::thread& thread : threads) {
    thread.join();
  }
  if (failure) {
    std::rethrow_exception(failure);
  }
}

}  // namespace llmprof
