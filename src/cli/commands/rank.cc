// SPDX-License-Identifier: Apache-2.0
//
// gpuwhy rank: becomes a profiler and its program, with the number of this rank in the profiler's
// options. `gpuwhy run --server 'mpirun ...'` starts each rank through this command.
#include <cerrno>
#include <cstring>
#include <memory>

#include <fmt/format.h>
#include <unistd.h>

#include "base/error.h"
#include "capture/launcher.h"
#include "capture/rank_command.h"
#include "capture/workload.h"
#include "cli/command.h"

namespace gpuwhy {
namespace {

int run_rank(const std::vector<std::string>& command, const Context& context) {
  const auto rank = launched_rank_number(context.system);
  if (!rank) {
    throw Error(ErrorKind::kUsage, "rank: no launcher started this process",
                "mpirun -n 8 gpuwhy rank -- nsys profile --output=rank-{rank} PROGRAM");
  }
  std::vector<std::string> words = as_rank(build_work_argv(context.system, {}, command), *rank);
  std::vector<char*> argv;
  argv.reserve(words.size() + 1);
  for (std::string& word : words) {
    argv.push_back(word.data());
  }
  argv.push_back(nullptr);
  ::execv(argv[0], argv.data());
  throw Error(ErrorKind::kEnvironment,
              fmt::format("cannot start {}: {}", words[0], std::strerror(errno)));
}

}  // namespace

Command rank_program_command() {
  auto words = std::make_shared<std::vector<std::string>>();
  Command command;
  command.name = "rank";
  command.summary = "Start a profiler as one rank of many: {rank} in its options is its number";
  command.examples =
      "  mpirun -n 8 gpuwhy rank -- nsys profile --output=rank-{rank} --session-new=mine-{rank} "
      "python train.py\n";
  command.is_hidden = true;
  command.rest = words.get();
  command.run = [words](Context& context) { return run_rank(*words, context); };
  return command;
}

}  // namespace gpuwhy
