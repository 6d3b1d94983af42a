// SPDX-License-Identifier: Apache-2.0
#include "ingest/run_tasks.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <system_error>
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
  {
    std::vector<std::jthread> threads;  // each is joined at the end of this block
    const std::size_t wanted = std::min<std::size_t>(num_threads, tasks.size());
    threads.reserve(wanted);
    try {
      while (threads.size() + 1 < wanted) {
        threads.emplace_back(work);
      }
    } catch (const std::system_error&) {
      // The system gives no more: those that are there do it all.
    }
    work();
  }
  if (failure) {
    std::rethrow_exception(failure);
  }
}

}  // namespace llmprof
