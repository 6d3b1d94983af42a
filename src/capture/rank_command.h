// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace gpuwhy {

// A command line that starts a program several times on this machine, each time as a rank:
// mpirun -n 8 PROGRAM.
struct RankCommand {
  std::size_t program = 0;                // position of the program
  std::optional<std::int64_t> num_ranks;  // nullopt: the launcher decides
};

// nullopt if the command starts no ranks, or some on other machines.
std::optional<RankCommand> rank_command(const std::vector<std::string>& argv);

// In the options of a program, where its rank goes.
inline constexpr const char* kRankPlace = "{rank}";

// The command of one rank: its number is filled into the options before the program that is
// profiled, as in "nsys profile --output=rank-{rank} PROGRAM".
std::vector<std::string> as_rank(std::vector<std::string> argv, std::int64_t rank);

}  // namespace gpuwhy
