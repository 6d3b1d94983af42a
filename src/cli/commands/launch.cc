// SPDX-License-Identifier: Apache-2.0
//
// llmprof launch: the line that starts a run on many ranks. It prints and starts nothing: where and
// how a job starts is the site's business, and the line is made to be put into a batch script. What
// it adds is the run's id, made once, so that ranks that never talk to each other share a
// directory.
#include <chrono>
#include <memory>

#include <fmt/chrono.h>
#include <fmt/format.h>

#include "base/error.h"
#include "base/exit_code.h"
#include "base/text.h"
#include "capture/launcher.h"
#include "capture/workload.h"
#include "cli/command.h"
#include "config/compose.h"
#include "session/recording.h"
#include "session/run_options.h"

namespace llmprof {
namespace {

struct LaunchCommandOptions {
  std::string launcher;
  std::string ranks;
  std::string nodes;
  std::vector<std::string> overrides;
  std::vector<std::string> command;
};

std::string new_run_id(const System& system) {
  const auto given = system.variable(kRunIdVariable);
  return given ? *given
               : fmt::format("{:%Y%m%d-%H%M%S}", fmt::gmtime(std::chrono::system_clock::to_time_t(
                                                     std::chrono::system_clock::now())));
}

std::vector<std::string> launcher_argv(const LaunchCommandOptions& asked) {
  const std::size_t ranks = positive_number("--ranks", asked.ranks);
  const std::size_t nodes = asked.nodes.empty() ? 0 : positive_number("--nodes", asked.nodes);
  if (nodes > 0 && ranks % nodes != 0) {
    throw Error(ErrorKind::kUsage,
                fmt::format("{} ranks do not spread evenly over {} nodes", ranks, nodes));
  }
  std::vector<std::string> argv;
  if (asked.launcher == "slurm") {
    argv = {"srun", fmt::format("--ntasks={}", ranks)};
    if (nodes > 0) {
      argv.push_back(fmt::format("--nodes={}", nodes));
      argv.push_back(fmt::format("--ntasks-per-node={}", ranks / nodes));
    }
  } else {
    // Open MPI's spelling. Others pass the environment on by themselves.
    argv = {"mpirun", "-n", fmt::format("{}", ranks), "-x", kRunIdVariable};
    if (nodes > 0) {
      argv.insert(argv.end(), {"--map-by", fmt::format("ppr:{}:node", ranks / nodes)});
    }
  }
  return argv;
}

int run_launch(const LaunchCommandOptions& asked, Context& context) {
  if (asked.command.empty()) {
    throw Error(ErrorKind::kUsage, "launch: needs a program behind --",
                "llmprof launch slurm --ranks 16 -- PROGRAM [ARGUMENT...]");
  }
  // A configuration that is wrong is told here, not by a thousand ranks.
  const RunOptions options = run_options_of(compose(std::nullopt, asked.overrides));
  std::vector<std::string> argv = launcher_argv(asked);
  argv.insert(argv.end(), {"llmprof", "run"});
  argv.insert(argv.end(), asked.overrides.begin(), asked.overrides.end());
  argv.emplace_back("--");
  argv.insert(argv.end(), asked.command.begin(), asked.command.end());
  const std::string run_id = new_run_id(context.system);
  context.console.out(
      fmt::format("export {}={}\n{}\nllmprof merge {}\n", kRunIdVariable,
                  printable(shell_text({run_id})), printable(shell_text(argv)),
                  printable(shell_text({(options.common.stage2_dir / run_id).string()}))));
  return kExitOk;
}

}  // namespace

Command launch_command() {
  auto asked = std::make_shared<LaunchCommandOptions>();
  Command command;
  command.name = "launch";
  command.summary = "Print the lines that run a program on many ranks and merge what they leave";
  command.options = {
      {"LAUNCHER",
       "",
       "slurm (srun) or mpi (mpirun of Open MPI)",
       &asked->launcher,
       {"slurm", "mpi"},
       nullptr,
       true},
      override_option(asked->overrides),
      {"--ranks", "N", "How many", &asked->ranks, {}, nullptr, true},
      {"--nodes", "N", "Spread evenly over so many nodes", &asked->nodes},
  };
  command.examples =
      "  llmprof launch slurm --ranks 16 --nodes 2 ranks.capture=every:8 -- ./train\n";
  command.rest = &asked->command;
  command.run = [asked](Context& context) { return run_launch(*asked, context); };
  return command;
}

}  // namespace llmprof
