// SPDX-License-Identifier: Apache-2.0
#include "base/run_tasks.h"

#include <atomic>
#include <cstdlib>
#include <fstream>
#include <stdexcept>
#include <thread>

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include "sanitizers.h"

namespace gpuwhy {
namespace {

using Tasks = std::vector<std::function<void()>>;

TEST(RunTasks, ManyThreadsForFewTasks) {
  for (const unsigned num_threads : {0U, 1U, 2U, 3U, 100'000U}) {
    std::atomic<int> done{0};
    run_tasks(Tasks(3, [&] { ++done; }), num_threads);
    EXPECT_EQ(done, 3) << num_threads;
    run_tasks({}, num_threads);
  }
}

// Leaves room for the stacks of a few threads, and asks for a thousand. Ends the process.
[[noreturn]] void run_with_little_room() {
  std::size_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  constexpr std::size_t kRoom = 64 << 20;
  const rlim_t most = pages * static_cast<std::size_t>(sysconf(_SC_PAGESIZE)) + kRoom;
  const rlimit limit = {most, most};
  constexpr std::size_t kTasks = 1000;
  std::atomic<std::size_t> done{0};
  const Tasks tasks(kTasks, [&] { ++done; });
  const bool is_limited = setrlimit(RLIMIT_AS, &limit) == 0;
  run_tasks(tasks, kTasks);
  std::_Exit(is_limited && done == kTasks ? 0 : 1);
}

TEST(RunTasks, WhereTheSystemGivesNoMoreThreadsThoseThereDoItAll) {
  if (kHasSanitizer) {
    GTEST_SKIP() << "sanitizers want all of the address space";
  }
  EXPECT_EXIT(run_with_little_room(), testing::ExitedWithCode(0), "");
}

TEST(RunTasks, TheFirstFailureLeavesAfterAllHaveEnded) {
  std::atomic<int> running{0};
  const auto task = [&] {
    ++running;
    std::this_thread::yield();
    --running;
    throw std::runtime_error("no");
  };
  EXPECT_THROW(run_tasks(Tasks(50, task), 4), std::runtime_error);
  EXPECT_EQ(running, 0);
}

// The later task fails first: the earlier one waits for it.
TEST(RunTasks, TheFirstTaskInTheListThatFailedIsReported) {
  std::atomic<bool> has_failed{false};
  const Tasks tasks = {[&] {
                         while (!has_failed) {
                           std::this_thread::yield();
                         }
                         throw std::runtime_error("first");
                       },
                       [&] {
                         has_failed = true;
                         throw std::runtime_error("second");
                       }};
  try {
    run_tasks(tasks, 2);
    FAIL();
  } catch (const std::runtime_error& error) {
    EXPECT_STREQ(error.what(), "first");
  }
}

}  // namespace
}  // namespace gpuwhy
