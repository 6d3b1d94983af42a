// SPDX-License-Identifier: Apache-2.0
#include "capture/subprocess.h"

#include <csignal>
#include <cstdlib>
#include <fstream>

#include <fmt/format.h>
#include <unistd.h>

#include "temporary.h"
#include "testing.h"

namespace gpuwhy {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

Process shell(const std::string& script) {
  return {{"/bin/sh", "-c", script}, {{"PATH", "/usr/bin:/bin"}, {"SEEN", "yes"}}};
}

TEST(Subprocess, CollectsBothStreamsAndTheCode) {
  const ProcessResult result = run_process(shell("echo out; echo err >&2; exit 3"));
  EXPECT_EQ(result.out, "out\n");
  EXPECT_EQ(result.err, "err\n");
  EXPECT_EQ(result.exit_code, 3);
  EXPECT_FALSE(result.timed_out);
  EXPECT_FALSE(result.succeeded());
}

TEST(Subprocess, GivesExactlyTheEnvironmentAskedFor) {
  const ProcessResult result = run_process(shell("echo $SEEN; echo ${HOME:-none}"));
  EXPECT_EQ(result.out, "yes\nnone\n");
}

TEST(Subprocess, StandardInputIsEmpty) {
  EXPECT_EQ(run_process(shell("cat")).out, "");
}

TEST(Subprocess, ArgumentsAreNotInterpreted) {
  const ProcessResult result = run_process({{"/bin/echo", "$HOME; rm -rf 'x' `id` \"y\""}, {}});
  EXPECT_EQ(result.out, "$HOME; rm -rf 'x' `id` \"y\"\n");
}

TEST(Subprocess, ASignalReadsAsShellsSayIt) {
  EXPECT_EQ(run_process(shell("kill -TERM $$")).exit_code, 128 + 15);
}

TEST(Subprocess, TheTimeLimitKillsTheWholeGroup) {
  const TemporaryDirectory directory;
  const std::string pid_file = (directory.path() / "pid").string();
  Process command = shell("sleep 300 & echo $! > " + pid_file + "; sleep 300");
  pid_t child = 0;
  // A busy machine may need longer until the number is written.
  for (command.timeout = milliseconds(500); child == 0 && command.timeout < milliseconds(100'000);
       command.timeout *= 4) {
    EXPECT_TRUE(run_process(command).timed_out);
    std::ifstream(pid_file) >> child;
  }
  ASSERT_GT(child, 0);
  const auto lives = [&] {
    std::string name;
    std::string state;
    std::ifstream stat(fmt::format("/proc/{}/stat", child));
    return (stat >> child >> name >> state) && state != "Z";
  };
  for (int i = 0; i < 10'000 && lives(); ++i) {
    ::usleep(10'000);
  }
  EXPECT_FALSE(lives()) << "a child outlived the time limit";
}

// nsys leaves such agents behind: end of file never comes.
TEST(Subprocess, ADaemonThatHoldsTheOutputDoesNotHoldUs) {
  const auto start = steady_clock::now();
  const ProcessResult result = run_process(shell("setsid sleep 300 & echo $!"));
  const pid_t daemon = std::atoi(result.out.c_str());
  ASSERT_GT(daemon, 0);
  ::kill(daemon, SIGKILL);
  EXPECT_LT(steady_clock::now() - start, std::chrono::seconds(250));
}

TEST(Subprocess, ManyBytesOnBothStreamsDoNotBlock) {
  const ProcessResult result =
      run_process(shell("head -c 3000000 /dev/zero; head -c 3000000 /dev/zero >&2"));
  EXPECT_EQ(result.out.size(), 3'000'000U);
  EXPECT_EQ(result.err.size(), 3'000'000U);
}

TEST(Subprocess, EndlessOutputIsCut) {
  Process command = shell("head -c 20000000 /dev/zero");
  EXPECT_EQ(run_process(command).out.size(), 4U << 20);
}

// As some launchers start us: then nobody can be waited for.
TEST(Subprocess, IgnoredChildSignalsDoNotHangUs) {
  ::signal(SIGCHLD, SIG_IGN);
  const auto start = steady_clock::now();
  EXPECT_EQ(run_process(shell("echo hi")).out, "hi\n");
  EXPECT_LT(steady_clock::now() - start, std::chrono::seconds(250));
  ::signal(SIGCHLD, SIG_DFL);
}

TEST(Subprocess, AMissingProgramIsAnEnvironmentError) {
  expect_error(
      [] {
        run_process({{"/absent/tool"}, {}});
      },
      ErrorKind::kEnvironment, HasSubstr("cannot start /absent/tool"), _);
}

}  // namespace
}  // namespace gpuwhy
