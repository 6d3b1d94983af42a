// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include <sys/types.h>

namespace gpuwhy {

// A program to run: an argument list, never a shell command.
struct Process {
  std::vector<std::string> argv;  // argv[0] is the path of the program
  std::map<std::string, std::string> environment;
  std::chrono::milliseconds timeout{10'000};
  std::filesystem::path directory = {};  // where it runs; empty: here
};

// What a process left behind.
struct ProcessResult {
  int exit_code = -1;  // 128 + signal when a signal ended it, as shells say
  bool timed_out = false;
  std::string out;  // each cut at 4 MiB
  std::string err;

  bool succeeded() const { return exit_code == 0 && !timed_out; }
};

// Runs until the end or the timeout, in its own process group, which is killed as a whole on
// timeout. Standard input is /dev/null. Returns as soon as the program itself has ended, even if a
// daemon keeps its output open. Throws kEnvironment if the program cannot be started.
ProcessResult run_process(const Process& process);

// Starts a program in its own process group, with standard input from /dev/null and output to the
// two file descriptors; the caller waits for it. Throws kEnvironment if it cannot be started.
pid_t start_process(const Process& process, int out, int err);

// The exit code as shells report it: 128 + signal if a signal ended the process.
int exit_code_of(int status);

// From now on SIGINT, SIGTERM and SIGHUP also end the program that run_process() waits for, which
// is in another process group and would not receive them. To be called by main().
void end_programs_with_us();

}  // namespace gpuwhy
