// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "capture/system.h"

namespace llmprof {

inline constexpr const char* kRunIdVariable = "LLMPROF_RUN_ID";

// Which rank of which job this process is, as its launcher says in the environment.
struct LaunchedRank {
  std::string launcher;  // "torchrun", "mpirun", "pmi", "srun"
  std::string run_id;    // the same on all ranks and in all attempts
  std::string node;      // as the launcher names it; empty: it does not
  std::int64_t rank = 0;
  std::int64_t num_ranks = 0;
  std::int64_t attempt = 0;  // how often the job was started anew
};

// Nothing where no launcher started this, or one rank alone. Throws kUsage where the launcher tells
// no name that all ranks share and LLMPROF_RUN_ID is not set, or where a number is none.
std::optional<LaunchedRank> launched_rank(const System& system);

}  // namespace llmprof
