// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "capture/system.h"

namespace gpuwhy {

// Names the run on all ranks; set by the user before the launcher.
inline constexpr const char* kRunIdVariable = "GPUWHY_RUN_ID";

// The rank of this process within its job, according to the launcher's environment variables.
struct LaunchedRank {
  std::string launcher;  // "torchrun", "mpirun", "pmi", "srun"
  std::string run_id;    // the same on all ranks and in all attempts
  std::string node;      // as the launcher names it; may be empty
  std::int64_t rank = 0;
  std::int64_t num_ranks = 0;
  std::int64_t attempt = 0;  // number of restarts
};

// nullopt if no launcher started this process, or only one rank. Throws kUsage if the launcher has
// no name shared by all ranks and GPUWHY_RUN_ID is not set, if a number is malformed, or if the
// rank is not one of the job's.
std::optional<LaunchedRank> launched_rank(const System& system);

// The number of this process among its ranks, for any launcher and any number of them; nullopt if
// none started it. Throws kUsage if it is malformed.
std::optional<std::int64_t> launched_rank_number(const System& system);

}  // namespace gpuwhy
