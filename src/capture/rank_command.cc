// SPDX-License-Identifier: Apache-2.0
//
// Command lines of MPI: where the program of a rank begins in them.
//
// Options and their values are those of mpirun(1) of Open MPI, mpiexec(1) of MPICH and srun(1).
// What it gets wrong: an option with a value that is not in the table, whose value is mistaken for
// the program. Nothing then starts, and the user sees which word was meant.
#include "capture/rank_command.h"

#include <algorithm>
#include <filesystem>
#include <string_view>

#include "base/parse_number.h"

namespace gpuwhy {
namespace {

constexpr std::string_view kLauncherNames[] = {"mpirun", "mpiexec", "mpiexec.hydra", "orterun",
                                               "srun"};
constexpr std::string_view kCountOptions[] = {"-n", "-np", "--np", "--ntasks"};
// With one value each.
constexpr std::string_view kValueOptions[] = {"-c",         "-x",
                                              "--map-by",   "--bind-to",
                                              "--rank-by",  "--mpi",
                                              "-wdir",      "--wdir",
                                              "--tag",      "-envlist",
                                              "-genvlist",  "-bind-to",
                                              "-map-by",    "-ppn",
                                              "--npernode", "-npernode",
                                              "--timeout",  "--report-state-on-timeout",
                                              "-p",         "-A",
                                              "-J",         "--partition",
                                              "--account",  "--job-name",
                                              "--gpus",     "--cpus-per-task",
                                              "-t",         "--time"};
// With two: --mca KEY VALUE.
constexpr std::string_view kPairOptions[] = {"--mca", "-mca", "-env", "-genv", "--prtemca"};
// They name machines.
constexpr std::string_view kMachineOptions[] = {
    "-H",           "-host", "--host", "--hosts", "-hosts", "-hostfile",  "--hostfile",
    "-machinefile", "-f",    "-N",     "--nodes", "-w",     "--nodelist", "--machinefile"};

template <std::size_t N>
bool is_one_of(std::string_view word, const std::string_view (&names)[N]) {
  return std::find(std::begin(names), std::end(names), word) != std::end(names);
}

}  // namespace

std::optional<RankCommand> rank_command(const std::vector<std::string>& argv) {
  if (argv.empty() ||
      !is_one_of(std::filesystem::path(argv[0]).filename().string(), kLauncherNames)) {
    return std::nullopt;
  }
  RankCommand found;
  std::size_t i = 1;
  while (i < argv.size() && argv[i].starts_with('-')) {
    const std::size_t equals = argv[i].find('=');
    const std::string name = argv[i].substr(0, equals);
    if (is_one_of(name, kMachineOptions)) {
      return std::nullopt;
    }
    const bool is_count = is_one_of(name, kCountOptions);
    if (is_count && equals != std::string::npos) {
      found.num_ranks = parse_whole(argv[i].substr(equals + 1));
    } else if (is_count && i + 1 < argv.size()) {
      found.num_ranks = parse_whole(argv[i + 1]);
    }
    if (name == "--") {
      ++i;
      break;
    }
    const bool has_value = equals == std::string::npos;
    i += has_value && is_one_of(name, kPairOptions)                  ? 3
         : has_value && (is_count || is_one_of(name, kValueOptions)) ? 2
                                                                     : 1;
  }
  if (i >= argv.size()) {
    return std::nullopt;
  }
  found.program = i;
  return found;
}

std::vector<std::string> as_rank(std::vector<std::string> argv, std::int64_t rank) {
  // "nsys profile", then its options.
  for (std::size_t i = 2; i < argv.size() && argv[i].starts_with('-'); ++i) {
    const std::size_t place = argv[i].find(kRankPlace);
    if (place != std::string::npos) {
      argv[i].replace(place, std::string_view(kRankPlace).size(), std::to_string(rank));
    }
  }
  return argv;
}

}  // namespace gpuwhy
