// SPDX-License-Identifier: Apache-2.0
#include "base/task_graph.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdlib>
#include <fstream>
#include <latch>
#include <random>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <sys/resource.h>
#include <unistd.h>

#include "sanitizers.h"
#include "testing.h"

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

TEST(TaskGraph, IsTimedInTheOrderOfAdding) {
  PassTimer timer;
  TaskGraph graph(&timer);
  const auto first = graph.add("first", {}, [] {});
  graph.add("second", {first}, [] {});
  graph.add("third", {}, [] {});
  graph.run(3);
  std::vector<std::string> names;
  for (const PassTimer::Pass& pass : timer.passes()) {
    names.push_back(pass.name);
  }
  EXPECT_THAT(names, testing::ElementsAre("first", "second", "third"));
}

// Each of the two waits for the other to have started.
TEST(TaskGraph, WakesIdleThreadsForWhatBecomesReady) {
  TaskGraph graph;
  std::latch both(2);
  const auto first = graph.add("", {}, [] {});
  graph.add("", {first}, [&] { both.arrive_and_wait(); });
  graph.add("", {first}, [&] { both.arrive_and_wait(); });
  graph.run(2);
}

// Tasks that need others by chance, some of which fail.
TEST(TaskGraph, RunsEachTaskAfterThoseItNeedsAndReportsTheFailureOfOneThread) {
  constexpr std::size_t kTasks = 12;
  std::set<std::string> failures;
  for (std::uint32_t seed = 0; seed < 400; ++seed) {
    std::string alone;
    for (const unsigned num_threads : {1U, 2U, 3U, 8U}) {
      std::mt19937 random(seed);
      const auto one_in = [&](std::uint32_t number) { return random() % number == 0; };
      std::array<std::atomic<bool>, kTasks> is_done{};
      std::vector<TaskGraph::Task> tasks;
      TaskGraph graph;
      for (std::size_t i = 0; i < kTasks; ++i) {
        const std::size_t a = i == 0 || one_in(3) ? kTasks : random() % i;
        const std::size_t b = i == 0 || one_in(2) ? kTasks : random() % i;
        const bool fails = one_in(12);
        const auto work = [&is_done, i, a, b, fails] {
          for (const std::size_t needed : {a, b}) {
            if (needed < kTasks && !is_done[needed]) {
              throw std::runtime_error("not ready");
            }
          }
          std::this_thread::yield();
          if (fails) {
            throw std::runtime_error(std::to_string(i));
          }
          is_done[i] = true;
        };
        tasks.push_back(a == kTasks && b == kTasks ? graph.add("", {}, work)
                        : b == kTasks              ? graph.add("", {tasks[a]}, work)
                        : a == kTasks              ? graph.add("", {tasks[b]}, work)
                                                   : graph.add("", {tasks[a], tasks[b]}, work));
      }
      std::string failure = "none";
      try {
        graph.run(num_threads);
        EXPECT_TRUE(std::ranges::all_of(is_done, [](const auto& done) { return done.load(); }));
      } catch (const std::runtime_error& error) {
        failure = error.what();
      }
      alone = num_threads == 1 ? failure : alone;
      ASSERT_EQ(failure, alone) << "graph " << seed << ", " << num_threads << " threads";
    }
    failures.insert(alone);
  }
  EXPECT_FALSE(failures.contains("not ready"));
  EXPECT_EQ(failures.size(), kTasks + 1) << "graphs too much alike to prove anything";
}

}  // namespace
}  // namespace gpuwhy
