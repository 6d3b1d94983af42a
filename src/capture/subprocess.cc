// SPDX-License-Identifier: Apache-2.0
//
// Execution of short-lived programs with captured output and a time limit.
//
// Two habits of the tools shape this. nsys leaves agents behind that inherit its output, so end of
// file may never come: the program's own end counts, and only what is in the pipes by then is read.
// And a tool may hang (nsys 2022.4 does on recent kernels), so there is a time limit, after which
// the whole process group is killed, not only the leader.
#include "capture/subprocess.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <utility>

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/error.h"
#include "base/temporary_file.h"
#include "base/units.h"
#include "capture/pipe.h"

namespace gpuwhy {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t kMostOutput = 4 * kMiB;
constexpr int kPollMs = 20;
constexpr std::chrono::seconds kPatienceAfterKill{2};

void keep_start(std::string& text, std::string_view more) {
  const std::size_t room = kMostOutput - std::min(text.size(), kMostOutput);
  text.append(more.substr(0, room));
}

std::vector<char*> pointers_to(std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  pointers.reserve(texts.size() + 1);
  for (std::string& text : texts) {
    pointers.push_back(text.data());
  }
  pointers.push_back(nullptr);
  return pointers;
}

// The process group that run_process() waits for, for the signal handler. There is only one: tools
// are run one after the other.
std::atomic<pid_t> running_group{0};

void end_running_group(int signal) {
  const pid_t group = running_group.load();
  if (group > 0) {
    ::kill(-group, SIGKILL);
  }
  remove_doomed_files();
  ::signal(signal, SIG_DFL);
  ::raise(signal);
}

}  // namespace

pid_t start_process(const Process& process, int out, int err) {
  std::vector<std::string> argv = process.argv;
  std::vector<std::string> environment;
  for (const auto& [name, value] : process.environment) {
    environment.push_back(name + "=" + value);
  }
  posix_spawn_file_actions_t actions{};
  posix_spawnattr_t attributes{};
  posix_spawn_file_actions_init(&actions);
  posix_spawnattr_init(&attributes);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, out, STDOUT_FILENO);
  if (!process.directory.empty()) {
    posix_spawn_file_actions_addchdir_np(&actions, process.directory.c_str());
  }
  posix_spawn_file_actions_adddup2(&actions, err, STDERR_FILENO);
  // A shell starts background jobs with SIGINT ignored, which is how captures are stopped. So our
  // children get default handling of every signal.
  sigset_t all{};
  sigset_t none{};
  ::sigfillset(&all);
  ::sigemptyset(&none);
  posix_spawnattr_setsigdefault(&attributes, &all);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setflags(&attributes,
                           POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK);
  posix_spawnattr_setpgroup(&attributes, 0);
  pid_t pid = -1;
  const int failure = ::posix_spawn(&pid, argv.at(0).c_str(), &actions, &attributes,
                                    pointers_to(argv).data(), pointers_to(environment).data());
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  // A script without a #! line is the most common cause.
  if (failure == ENOEXEC) {
    throw Error(
        ErrorKind::kUsage, fmt::format("cannot start {}: it is not a program", argv[0]),
        fmt::format("a script needs a first line as #!/bin/sh, or its interpreter in front: "
                    "sh {}",
                    argv[0]));
  }
  if (failure != 0) {
    throw Error(ErrorKind::kEnvironment,
                fmt::format("cannot start {}: {}", argv[0], std::strerror(failure)));
  }
  return pid;
}

int exit_code_of(int status) {
  return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

void end_programs_with_us() {
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    if (::signal(signal, end_running_group) == SIG_IGN) {
      ::signal(signal, SIG_IGN);  // started under nohup: stays deaf
    }
  }
  ::signal(SIGCHLD,
           SIG_DFL);  // some launchers leave it ignored, and then no exit code is ever seen
}

ProcessResult run_process(const Process& process) {
  ProcessResult result;
  Pipe out;
  Pipe err;
  const auto take_all = [&] {
    out.take([&](std::string_view more) { keep_start(result.out, more); });
    err.take([&](std::string_view more) { keep_start(result.err, more); });
  };
  const pid_t pid = start_process(process, out.write_end(), err.write_end());
  out.close_write();
  err.close_write();
  running_group = pid;
  const Clock::time_point deadline = Clock::now() + process.timeout;
  while (true) {
    if (out.is_open() || err.is_open()) {
      std::array<pollfd, 2> ends = {{{out.read_end(), POLLIN, 0}, {err.read_end(), POLLIN, 0}}};
      ::poll(ends.data(), ends.size(), kPollMs);
    } else {
      ::usleep(1000);  // it closed its output and may still run
    }
    take_all();
    if (!result.timed_out && Clock::now() >= deadline) {
      result.timed_out = true;
      ::kill(-pid, SIGKILL);
    }
    int status = 0;
    const pid_t ended = ::waitpid(pid, &status, WNOHANG);
    if (ended == pid) {
      result.exit_code = exit_code_of(status);
    }
    // Not ours to wait for (SIGCHLD is ignored), or stuck in the kernel: no answer will come.
    const bool is_lost = ended < 0 && errno != EINTR;
    const bool is_stuck = result.timed_out && Clock::now() >= deadline + kPatienceAfterKill;
    if (ended == pid || is_lost || is_stuck) {
      break;
    }
  }
  running_group = 0;
  take_all();
  return result;
}

}  // namespace gpuwhy
