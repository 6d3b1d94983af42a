// SPDX-License-Identifier: Apache-2.0
//
// Real programs under supervision, most of them ill-behaved; behind each test nothing of theirs is
// alive.
#include "capture/supervise.h"

#include <algorithm>
#include <atomic>
#include <charconv>
#include <csignal>
#include <fstream>
#include <thread>

#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"
#include "temporary.h"
#include "testing.h"

namespace gpuwhy {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

bool is_alive(pid_t pid) {
  const std::string stat = read_pseudo_file(fmt::format("/proc/{}/stat", pid));
  const std::size_t close = stat.rfind(')');
  return close != std::string::npos && stat[close + 2] != 'Z' && stat[close + 2] != 'X';
}

class Supervise : public testing::Test {
 protected:
  Supervise() {
    // Of programs that are deaf; heeds() is for those that are not.
    step.limits.until_term = milliseconds(700);
    step.limits.until_kill = milliseconds(1400);
    step.log = directory.path() / "log.txt";
  }

  void TearDown() override {
    errno = 0;
    EXPECT_EQ(::waitpid(-1, nullptr, WNOHANG), -1) << "a child is left";
    EXPECT_EQ(errno, ECHILD);
    for (const pid_t pid : pids()) {
      EXPECT_FALSE(is_alive(pid)) << pid;
    }
  }

  StepResult run(const std::string& script) {
    step.process.argv = {"/bin/sh", "-c", script};
    step.process.environment = {{"PATH", "/usr/bin:/bin"}, {"D", directory.path().string()}};
    return supervise(step, [&](const StepProgress& progress) {
      last = progress;
      ++num_reports;
      if (on_progress) {
        on_progress(progress);
      }
    });
  }

  // A program that ends when it is asked has all the time it needs: a busy machine gives it little.
  void heeds(int number) {
    step.limits.until_term = number == SIGINT ? kAges : step.limits.until_term;
    step.limits.until_kill = kAges;
  }

  // With a time limit that comes after the script has said `ready` in the log: with a longer one
  // where it came before.
  StepResult run_until_ready(const std::string& script) {
    for (step.limits.timeout = seconds(1);; step.limits.timeout *= 4) {
      std::filesystem::remove(directory.path() / "pids");
      std::filesystem::remove(step.log);
      StepResult result = run(script);
      if (step.limits.timeout > seconds(100) || log().starts_with("ready\n")) {
        return result;
      }
    }
  }

  std::string log() const { return read_file(step.log); }

  // Processes that wrote their number with: echo $$ >> $D/pids
  std::vector<pid_t> pids() const {
    std::vector<pid_t> found;
    std::ifstream file(directory.path() / "pids");
    for (pid_t pid = 0; file >> pid;) {
      found.push_back(pid);
    }
    return found;
  }

  static constexpr milliseconds kAges{120'000};
  TemporaryDirectory directory;
  Step step;
  StepProgress last;
  int num_reports = 0;
  std::function<void(const StepProgress&)> on_progress;
};

TEST_F(Supervise, ExitCodeLogAndTime) {
  directory.add("log.txt", "before\n");
  const StepResult result = run("echo out; echo err >&2; sleep 0.3; exit 3");
  EXPECT_EQ(result.exit_code, 3);
  EXPECT_EQ(result.end, StepEnd::kItself);
  EXPECT_EQ(log(), "before\nout\nerr\n");
  EXPECT_EQ(result.last_lines, "out\nerr\n");
  EXPECT_EQ(last.last_line, "err");
  EXPECT_FALSE(last.is_stopping);
  EXPECT_GE(num_reports, 2);
  EXPECT_GE(result.duration_ns, 300'000'000);
  EXPECT_THAT(result.left_over, IsEmpty());
}

// A program that ends at once closes its output a little earlier than it ends. One of many is not
// disturbed by what else runs; rounded up, each of them would take the time of a look, 100 ms.
TEST_F(Supervise, TheTimeIsNotRoundedUpToThatOfALook) {
  constexpr std::int64_t kHalfALookNs = 50'000'000;
  std::int64_t shortest_ns = INT64_MAX;
  for (int i = 0; i < 200 && shortest_ns >= kHalfALookNs; ++i) {
    shortest_ns = std::min(shortest_ns, run("exit 0").duration_ns);
  }
  EXPECT_LT(shortest_ns, kHalfALookNs);
}

TEST_F(Supervise, ASignalIsToldAsShellsDo) {
  const StepResult result = run("kill -SEGV $$");
  EXPECT_EQ(result.exit_code, 128 + SIGSEGV);
  EXPECT_EQ(result.end, StepEnd::kItself);
}

TEST_F(Supervise, WhatCannotBeStartedIsAnError) {
  step.process.argv = {"/absent/program"};
  expect_error([&] { supervise(step, [](const StepProgress&) {}); }, ErrorKind::kEnvironment,
               HasSubstr("/absent/program"), _);
  step.log = directory.path() / "absent/log.txt";
  expect_error([&] { run("exit 0"); }, ErrorKind::kFailure, HasSubstr("absent/log.txt"), _);
}

TEST_F(Supervise, TheTimeIsUp) {
  heeds(SIGINT);
  // Takes SIGINT as the tools do: finishes its work and ends well.
  const StepResult result = run_until_ready(
      "trap 'echo writing the report; exit 0' INT; echo ready; while :; do sleep 0.05; done");
  EXPECT_EQ(result.end, StepEnd::kTimeout);
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_EQ(log(), "ready\nwriting the report\n");
}

TEST_F(Supervise, ALimitOfCenturiesIsNoLimit) {
  step.limits.timeout = seconds::max();
  step.limits.most_silence = seconds::max();
  step.limits.patience = seconds::max();
  EXPECT_EQ(run("sleep 0.2; exit 5").exit_code, 5);
}

TEST_F(Supervise, AskedByTermWhereIntIsIgnored) {
  heeds(SIGTERM);
  const StepResult result = run_until_ready(
      "trap '' INT; trap 'echo term; exit 7' TERM; echo ready; while :; do sleep 0.05; done");
  EXPECT_EQ(result.end, StepEnd::kTimeout);
  EXPECT_EQ(result.exit_code, 7);
  EXPECT_TRUE(last.is_stopping);
}

TEST_F(Supervise, KilledWhereBothAreIgnored) {
  const StepResult result = run_until_ready(
      "trap '' INT TERM; echo $$ >> $D/pids; sh -c 'echo $$ >> $D/pids; echo ready; while :; do "
      "sleep 0.1; done' & while :; do sleep 0.05; done");
  EXPECT_EQ(result.end, StepEnd::kTimeout);
  EXPECT_EQ(result.exit_code, 128 + SIGKILL);
  EXPECT_EQ(pids().size(), 2U);
}

TEST_F(Supervise, AToolMayGoOnWritingWhenItsWorkloadIsKilled) {
  // Called nsys, so it is a tool; what it runs is the workload.
  directory.add_script("nsys",
                       "trap '' INT TERM\n"
                       "sh -c 'echo $$ >> $D/pids; echo ready; while :; do sleep 0.05; done'\n"
                       "echo $$ >> $D/pids; echo the workload is gone; sleep 0.5\n"
                       "echo the report is written; exit 0\n");
  const StepResult result = run_until_ready("exec $D/nsys");
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_EQ(result.end, StepEnd::kTimeout);
  EXPECT_THAT(log(), HasSubstr("the workload is gone\nthe report is written\n"));
}

TEST_F(Supervise, PatienceWithAToolEnds) {
  step.limits.patience = seconds(2);
  directory.add_script(
      "nsys", "trap '' INT TERM; echo $$ >> $D/pids; echo ready; while :; do sleep 0.05; done\n");
  const StepResult result = run_until_ready("exec $D/nsys");
  EXPECT_EQ(result.exit_code, 128 + SIGKILL);
  EXPECT_GE(result.duration_ns, 3'000'000'000);
}

TEST_F(Supervise, WhatItWroteIsCapped) {
  std::filesystem::create_directories(directory.path() / "out/sub");
  step.outputs = {directory.path() / "out", directory.path() / "absent"};
  step.limits.most_bytes = 5'000;
  heeds(SIGINT);
  const StepResult result =
      run("trap 'exit 0' INT; while :; do printf %01000d 1 >> $D/out/sub/report; sleep 0.05; done");
  EXPECT_EQ(result.end, StepEnd::kTooLarge);
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_GT(result.bytes, 5'000U);
  EXPECT_EQ(result.bytes, std::filesystem::file_size(directory.path() / "out/sub/report"));
}

TEST_F(Supervise, FreeSpaceIsWatched) {
  step.outputs = {directory.path() / "out"};
  step.limits.least_free_bytes = UINT64_MAX - 1;
  EXPECT_EQ(run("sleep 30").end, StepEnd::kDiskFull);
  step.limits.least_free_bytes = 1;
  EXPECT_EQ(run("sleep 0.1").end, StepEnd::kItself);
}

TEST_F(Supervise, SilenceIsNoProgress) {
  step.limits.most_silence = seconds(2);
  const StepResult result = run("sleep 60");
  EXPECT_EQ(result.end, StepEnd::kNoProgress);
  EXPECT_GE(result.duration_ns, 2'000'000'000);
}

TEST_F(Supervise, WordsAndBytesAreProgress) {
  step.outputs = {directory.path() / "out"};
  for (const char* sign : {"echo $i", "echo $i >> $D/out"}) {
    // Longer than the silence in all, and a third of it from sign to sign; more of both where a
    // busy machine lets the program wait.
    StepEnd end = StepEnd::kNoProgress;
    for (int silence_s = 3; silence_s < 60 && end == StepEnd::kNoProgress; silence_s *= 4) {
      step.limits.most_silence = seconds(silence_s);
      end = run(fmt::format("for i in 1 2 3 4; do {}; sleep {}; done", sign, 0.3 * silence_s)).end;
    }
    EXPECT_EQ(end, StepEnd::kItself) << sign;
  }
}

TEST_F(Supervise, DaemonsAreEndedAndNamed) {
  // A session of its own, orphaned twice over, deaf to SIGTERM, and holding the output open.
  const StepResult result =
      run("setsid sh -c '(trap \"\" TERM; exec sleep 61) & echo $! >> $D/pids' &\n"
          "(setsid sh -c '(exec sleep 62) & echo $! >> $D/pids; exit 0' &)\n"
          "while [ \"$(wc -l < $D/pids)\" != 2 ]; do sleep 0.05; done 2>/dev/null; exit 0");
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_EQ(result.end, StepEnd::kItself);
  ASSERT_EQ(pids().size(), 2U);
  ASSERT_EQ(result.left_over.size(), 2U);
  for (const pid_t pid : pids()) {
    EXPECT_THAT(result.left_over, testing::Contains(fmt::format("sleep (pid {})", pid)));
  }
}

TEST_F(Supervise, OrphansThatEndByThemselvesAreNotLeftOver) {
  const StepResult result = run("(sleep 0.3; echo late) & exit 0");
  EXPECT_THAT(result.left_over, IsEmpty());
  EXPECT_EQ(log(), "late\n");
}

TEST_F(Supervise, AProgramThatForksWhenItIsAskedToEnd) {
  // On a busy machine it may be killed before it could.
  for (int i = 0; i < 10 && pids().size() < 2; ++i) {
    std::filesystem::remove(directory.path() / "pids");
    const StepResult result =
        run("setsid sh -c 'trap \"setsid sleep 63 & echo \\$! >> $D/pids; exit 0\" TERM; "
            "echo $$ >> $D/pids; while :; do sleep 0.05; done' & "
            "while [ ! -s $D/pids ]; do sleep 0.05; done; exit 0");
    EXPECT_EQ(result.exit_code, 0);
  }
  EXPECT_EQ(pids().size(), 2U);
}

TEST_F(Supervise, OneInterruptStopsAndKeeps) {
  heeds(SIGINT);
  const InterruptCounter counter;
  std::atomic<bool> is_sent = false;
  std::thread sender;
  on_progress = [&](const StepProgress& progress) {
    if (progress.last_line == "ready" && !is_sent.exchange(true)) {
      sender = std::thread([] { ::raise(SIGINT); });
    }
  };
  const StepResult result =
      run("trap 'echo kept; exit 0' INT; echo ready; while :; do sleep 0.05; done");
  ASSERT_TRUE(is_sent);
  sender.join();
  EXPECT_EQ(result.end, StepEnd::kInterrupted);
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_THAT(log(), EndsWith("kept\n"));
  EXPECT_EQ(InterruptCounter::count(), 1);
}

TEST_F(Supervise, TwoInterruptsAbort) {
  const InterruptCounter counter;
  step.limits.until_term = seconds(60);
  step.limits.until_kill = seconds(60);
  int num_sent = 0;
  on_progress = [&](const StepProgress& progress) {
    if ((num_sent == 0 && progress.last_line == "ready") ||
        (num_sent == 1 && progress.is_stopping)) {
      ++num_sent;
      std::thread([&] { ::raise(num_sent == 1 ? SIGINT : SIGTERM); }).join();
    }
  };
  const StepResult result =
      run("trap '' INT TERM; echo $$ >> $D/pids; echo ready; while :; do sleep 0.05; done");
  EXPECT_EQ(result.end, StepEnd::kAborted);
  EXPECT_EQ(result.exit_code, 128 + SIGKILL);
  EXPECT_EQ(num_sent, 2);
}

TEST_F(Supervise, AnInterruptBetweenTwoStepsStopsTheNextUnlessAcknowledged) {
  const auto before = ::signal(SIGHUP, SIG_DFL);  // under nohup nobody hears it
  {
    const InterruptCounter counter;
    ::raise(SIGHUP);
    EXPECT_EQ(InterruptCounter::num_new(), 1);
    EXPECT_EQ(run("sleep 20").end, StepEnd::kInterrupted);
    EXPECT_EQ(InterruptCounter::num_new(), 0);
    EXPECT_EQ(run("exit 0").end, StepEnd::kItself);
    {
      const InterruptCounter inner;  // does not start over
      EXPECT_EQ(InterruptCounter::count(), 1);
    }
    ::raise(SIGHUP);
    InterruptCounter::acknowledge();
    EXPECT_EQ(run("exit 0").end, StepEnd::kItself);
    EXPECT_EQ(InterruptCounter::count(), 2);
  }
  ::signal(SIGHUP, before);
}

TEST_F(Supervise, HandlersAreGivenBack) {
  const auto mine = [](int) {};
  const auto before = ::signal(SIGTERM, mine);
  {
    const InterruptCounter counter;
    EXPECT_EQ(InterruptCounter::count(), 0);
    ::raise(SIGTERM);
    EXPECT_EQ(InterruptCounter::count(), 1);
  }
  EXPECT_EQ(::signal(SIGTERM, before), static_cast<void (*)(int)>(mine));
}

TEST_F(Supervise, LongLinesAndBinaryOutputGoToTheLogWhole) {
  const StepResult result =
      run("head -c 3000000 /dev/zero | tr '\\0' x; head -c 1000 /dev/zero; printf '\\377\\n'; "
          "sleep 0.3");
  const std::string text = log();
  ASSERT_EQ(text.size(), 3'001'002U);
  EXPECT_EQ(text.substr(0, 3'000'000), std::string(3'000'000, 'x'));
  EXPECT_EQ(text.substr(3'000'000), std::string(1000, '\0') + "\xff\n");
  EXPECT_EQ(result.last_lines.size(), 8192U) << "a few KiB in memory";
  EXPECT_EQ(result.last_lines, text.substr(text.size() - 8192));
  EXPECT_LE(last.last_line.size(), 400U);
}

TEST_F(Supervise, CarriageReturnsEndALineToo) {
  run("printf 'one\\r\\n10%%\\r20%%\\r'; sleep 0.5");
  EXPECT_EQ(last.last_line, "20%");
}

TEST_F(Supervise, AProgramThatNeverStopsTalkingIsStillWatched) {
  heeds(SIGINT);
  step.limits.timeout = seconds(1);
  step.log = "/dev/null";
  const StepResult result = run("yes & yes & yes & exec yes");
  EXPECT_EQ(result.end, StepEnd::kTimeout);
  EXPECT_EQ(result.exit_code, 128 + SIGINT);
}

TEST_F(Supervise, OneThatClosesItsOutputRunsOn) {
  const StepResult result = run("echo before; exec >&- 2>&-; sleep 0.5; exit 4");
  EXPECT_EQ(result.exit_code, 4);
  EXPECT_GE(result.duration_ns, 500'000'000);
  EXPECT_EQ(log(), "before\n");
}

TEST(StepEndName, EachHasOne) {
  EXPECT_STREQ(step_end_name(StepEnd::kItself), "itself");
  EXPECT_STREQ(step_end_name(StepEnd::kNoProgress), "no_progress");
  EXPECT_STREQ(step_end_name(StepEnd::kAborted), "aborted");
}

}  // namespace
}  // namespace gpuwhy
