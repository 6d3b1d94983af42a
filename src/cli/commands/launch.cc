// SPDX-License-Identifier: Apache-2.0
//
// gpuwhy launch: the line that starts a run on many ranks. It prints and starts nothing: where and
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
#include "session/record/run_options.h"

namespace gpuwhy {
namespace {

struct LaunchCommandOptions {
  std::string launcher;
  std::int64_t num_ranks = 0;
  std::optional<std::int64_t> num_nodes;
  std::string out;
  std::vector<std::string> overrides;
  std::vector<std::string> command;
};

std::string new_run_id(const System& system) {
  const auto given = system.variable(kRunIdVariable);
  return given ? *given
               : fmt::format("{:%Y%m%d-%H%M%S}", fmt::gmtime(std::chrono::system_clock::to_time_t(
                                                     std::chrono::system_clock::now())));
}

std::vector<std::string> launcher_argv(const LaunchCommandOptions& options) {
  const std::int64_t ranks = options.num_ranks;
  const std::int64_t nodes = options.num_nodes.value_or(0);
  if (nodes > 0 && ranks % nodes != 0) {
    throw Error(ErrorKind::kUsage,
                fmt::format("{} ranks do not spread evenly over {} nodes", ranks, nodes));
  }
  std::vector<std::string> argv;
  if (options.launcher == "slurm") {
    argv = {"srun", fmt::format("--ntasks={}", ranks)};
    if (nodes > 0) {
      argv.push_back(fmt::format("--nodes={}", nodes));
      argv.push_back(fmt::format("--ntasks-per-node={}", ranks / nodes));
    }
  } else if (options.launcher == "torchrun") {
    if (nodes > 1) {
      throw Error(ErrorKind::kUsage, "torchrun is started on each node by itself",
                  "slurm and mpi start all nodes; docs/fleet.md");
    }
    argv = {"torchrun", fmt::format("--nproc-per-node={}", ranks), "--no-python"};
  } else {
    // Open MPI's spelling. Others pass the environment on by themselves.
    argv = {"mpirun", "-n", fmt::format("{}", ranks), "-x", kRunIdVariable};
    if (nodes > 0) {
      argv.insert(argv.end(), {"--map-by", fmt::format("ppr:{}:node", ranks / nodes)});
    }
  }
  return argv;
}

int run_launch(const LaunchCommandOptions& options, Context& context) {
  if (options.command.empty()) {
    throw Error(ErrorKind::kUsage, "launch: needs a program after --",
                "gpuwhy launch slurm --ranks 16 -- PROGRAM [ARGUMENT...]");
  }
  // A configuration that is wrong is told here, not by a thousand ranks.
  const RunOptions run = run_options_of(compose(std::nullopt, options.overrides));
  std::vector<std::string> argv = launcher_argv(options);
  argv.insert(argv.end(), {"gpuwhy", "run"});
  if (!options.out.empty()) {
    argv.insert(argv.end(), {"--out", options.out});
  }
  argv.insert(argv.end(), options.overrides.begin(), options.overrides.end());
  argv.emplace_back("--");
  argv.insert(argv.end(), options.command.begin(), options.command.end());
  const std::string run_id = new_run_id(context.system);
  const std::filesystem::path folder =
      options.out.empty() ? run.artifacts_dir : std::filesystem::path(options.out);
  context.console.out(fmt::format("export {}={}\n{}\ngpuwhy merge {}\n", kRunIdVariable,
                                  printable(shell_text({run_id})), printable(shell_text(argv)),
                                  printable(shell_text({(folder / run_id).string()}))));
  return kExitOk;
}

}  // namespace

Command launch_command() {
  auto options = std::make_shared<LaunchCommandOptions>();
  Command command;
  command.name = "launch";
  command.summary = "Print the commands that profile a job of many ranks";
  command.options = {
      required(
          one_of({"slurm", "mpi", "torchrun"},
                 {"LAUNCHER", "", "slurm (srun), mpi (mpirun of Open MPI) or torchrun (one node)",
                  &options->launcher})),
      override_option(options->overrides),
      required({"--ranks", "N", "How many", &options->num_ranks}),
      {"--nodes", "N", "Number of nodes, ranks spread evenly", &options->num_nodes},
      {"-o,--out", "DIR", "Folder of runs: each gets a folder in it (gpuwhy-runs)", &options->out},
  };
  command.examples =
      "  gpuwhy launch slurm --ranks 16 --nodes 2 ranks.capture=every:8 -- ./train\n";
  command.rest = &options->command;
  command.run = [options](Context& context) { return run_launch(*options, context); };
  return command;
}

}  // namespace gpuwhy
