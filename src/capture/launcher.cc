// SPDX-License-Identifier: Apache-2.0
//
// Detection of this process's rank from launcher environment variables.
//
// The innermost launcher is trusted: mpirun inside a Slurm job starts its daemons with srun, whose
// SLURM_PROCID counts daemons, not ranks, and torchrun inside srun starts several ranks per task. A
// Slurm batch script also has SLURM_PROCID=0, but no step: it is not a rank.
//
// The run id must be the same on all ranks and in a requeued attempt, without communication: it is
// GPUWHY_RUN_ID, set once before the launcher (gpuwhy launch prints the line), or the job's own
// number if the launcher has one.
#include "capture/launcher.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/error.h"
#include "base/parse_number.h"
#include "base/text.h"

namespace gpuwhy {
namespace {

constexpr std::size_t kLongestId = 100;

// Names are from torch/distributed/elastic (torchrun), the manuals of Open MPI and MPICH,
// MVAPICH2's user guide, and srun(1).
struct LauncherVariables {
  const char* launcher;
  const char* rank;
  const char* num_ranks;
};
constexpr LauncherVariables kLaunchers[] = {
    {"torchrun", "RANK", "WORLD_SIZE"},
    {"mpirun", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"},
    {"mpirun", "MV2_COMM_WORLD_RANK", "MV2_COMM_WORLD_SIZE"},
    {"pmi", "PMI_RANK", "PMI_SIZE"},
    {"srun", "SLURM_PROCID", "SLURM_STEP_NUM_TASKS"},
};

std::optional<std::int64_t> number_in(const System& system, const char* name) {
  const auto text = system.variable(name);
  if (!text) {
    return std::nullopt;
  }
  const auto number = parse_whole(*text);
  if (!number || *number < 0) {
    throw Error(ErrorKind::kUsage, fmt::format("{}={}: not a whole number", name, printable(*text)),
                "a launcher sets it; unset it where there is none");
  }
  return number;
}

bool is_name(const std::string& text) {
  return !text.empty() && text.size() <= kLongestId && text[0] != '.' && text[0] != '-' &&
         std::ranges::all_of(text, [](unsigned char c) {
           return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                  c == '.' || c == '_' || c == '-';
         });
}

std::string run_id_of(const System& system, const std::string& launcher) {
  // In order of preference: the user's choice, the Slurm step, torchrun's rendezvous id.
  if (const auto given = system.variable(kRunIdVariable)) {
    if (!is_name(*given)) {
      throw Error(ErrorKind::kUsage,
                  fmt::format("{}={}: a run id is letters, digits, '.', '_' and '-', at most {}",
                              kRunIdVariable, printable(*given), kLongestId));
    }
    return *given;
  }
  const auto job = system.variable("SLURM_JOB_ID");
  const auto step = system.variable("SLURM_STEP_ID");
  if (job && step && is_name(*job) && is_name(*step)) {
    return fmt::format("slurm-{}.{}", *job, *step);
  }
  const auto elastic = system.variable("TORCHELASTIC_RUN_ID");
  if (elastic && *elastic != "none" && is_name(*elastic)) {
    return "torchrun-" + *elastic;
  }
  throw Error(ErrorKind::kUsage,
              fmt::format("{} says which rank this is, but not of which job", launcher),
              fmt::format("set {}=NAME before the launcher, the same for all ranks; gpuwhy launch "
                          "prints the line",
                          kRunIdVariable));
}

}  // namespace

std::optional<std::int64_t> launched_rank_number(const System& system) {
  for (const LauncherVariables& names : kLaunchers) {
    if (const auto rank = number_in(system, names.rank)) {
      return rank;
    }
  }
  return std::nullopt;
}

std::optional<LaunchedRank> launched_rank(const System& system) {
  for (const LauncherVariables& names : kLaunchers) {
    const auto rank = number_in(system, names.rank);
    // A single rank is an ordinary run.
    const auto num_ranks = number_in(system, names.num_ranks);
    if (!rank || !num_ranks) {
      continue;
    }
    if (*num_ranks > 0 && *rank >= *num_ranks) {
      throw Error(ErrorKind::kUsage,
                  fmt::format("{}={} is not a rank of {}={}", names.rank, *rank, names.num_ranks,
                              *num_ranks),
                  "a launcher sets both; unset them where there is none");
    }
    if (*num_ranks < 2) {
      return std::nullopt;
    }
    LaunchedRank found;
    found.launcher = names.launcher;
    found.rank = *rank;
    found.num_ranks = *num_ranks;
    // Restarts of the job, and restarts of the workers within it.
    constexpr std::int64_t kMostRestarts = 1000;
    const std::int64_t of_job = number_in(system, "SLURM_RESTART_COUNT").value_or(0);
    const auto of_workers = number_in(system, "TORCHELASTIC_RESTART_COUNT");
    found.attempt =
        std::min(of_job, kMostRestarts) * (of_workers && of_job > 0 ? kMostRestarts : 1) +
        std::min(of_workers.value_or(0), kMostRestarts - 1);
    found.node = system.variable("SLURMD_NODENAME").value_or("");
    found.run_id = run_id_of(system, found.launcher);
    return found;
  }
  return std::nullopt;
}

}  // namespace gpuwhy
