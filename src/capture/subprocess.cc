// SPDX-License-Identifier: Apache-2.0
//
// Runs a short-lived program and collects what it says.
//
// Two habits of the tools we ask shape this. nsys leaves agents behind that inherit its output, so
// end of file may never come: the program's own end is what counts, and only what is in the pipes
// by then is read. And a tool may hang (nsys 2022.4 does on recent kernels), so everything has a
// time limit and the whole process group is killed, not only the leader.
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
#include "base/units.h"

namespace llmprof {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t kMostOutput = 4 * kMiB;
constexpr int kPollMs = 20;
constexpr int kBlocksAtOnce = 64;  // of output; the clock is looked at in between
constexpr std::chrono::seconds kPatienceAfterKill{2};

// The read end is ours and does not block; the write end goes to the child.
struct Pipe {
  int read_end = -1;
  int write_end = -1;

  Pipe() {
    std::array<int, 2> ends{};
    if (::pipe2(ends.data(), O_CLOEXEC) != 0) {
      throw Error(ErrorKind::kFailure, fmt::format("cannot make a pipe: {}", std::strerror(errno)));
    }
    read_end = ends[0];
    write_end = ends[1];
    ::fcntl(read_end, F_SETFL, O_NONBLOCK);
  }
  ~Pipe() {
    close_write();
    close_read();
  }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;

  void close_write() { close_end(write_end); }
  void close_read() { close_end(read_end); }
  bool is_open() const { return read_end >= 0; }

  // Takes what is there, up to 1 MiB; closes at end of file.
  void drain(std::string& text) {
    std::array<char, 16 * kKiB> block{};
    for (int i = 0; i < kBlocksAtOnce && is_open(); ++i) {
      const ssize_t got = ::read(read_end, block.data(), block.size());
      if (got < 0 && errno == EINTR) {
        continue;
      }
      if (got < 0) {
        return;  // EAGAIN: nothing more for now
      }
      if (got == 0) {
        close_read();
        return;
      }
      const std::size_t room = kMostOutput - std::min(text.size(), kMostOutput);
      text.append(block.data(), std::min(static_cast<std::size_t>(got), room));
    }
  }

 private:
  static void close_end(int& fd) {
    if (fd >= 0) {
      ::close(std::exchange(fd, -1));
    }
  }
};

std::vector<char*> pointers_to(std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  pointers.reserve(texts.size() + 1);
  for (std::string& text : texts) {
    pointers.push_back(text.data());
  }
  pointers.push_back(nullptr);
  return pointers;
}

// The group that run_process() waits for, for the signal handler. One at a time: this program asks
// its tools in turn.
std::atomic<pid_t> running_group{0};

void end_running_group(int signal) {
  const pid_t group = running_group.load();
  if (group > 0) {
    ::kill(-group, SIGKILL);
  }
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
  // A shell starts background jobs deaf to SIGINT, which is how captures are stopped: what we start
  // hears every signal.
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
  if (failure == ENOEXEC) {
    throw Error(
        ErrorKind::kUsage, fmt::format("cannot start {}: it is no program", argv[0]),
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
  const pid_t pid = start_process(process, out.write_end, err.write_end);
  out.close_write();
  err.close_write();
  running_group = pid;
  const Clock::time_point deadline = Clock::now() + process.timeout;
  while (true) {
    if (out.is_open() || err.is_open()) {
      std::array<pollfd, 2> ends = {{{out.read_end, POLLIN, 0}, {err.read_end, POLLIN, 0}}};
      ::poll(ends.data(), ends.size(), kPollMs);
    } else {
      ::usleep(1000);  // it has closed its output: the end is near, or it runs on in silence
    }
    out.drain(result.out);
    err.drain(result.err);
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
  out.drain(result.out);
  err.drain(result.err);
  return result;
}

}  // namespace llmprof
