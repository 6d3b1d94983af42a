// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "analysis/attribution.h"
#include "analysis/rules.h"
#include "analysis/stages.h"
#include "analysis/structure.h"
#include "results/row.h"

namespace gpuwhy {

// A launch of a communication kernel on one GPU.
struct CollectiveLaunch {
  std::string device;
  std::string communicator;
  std::int64_t sequence = 0;  // of the communicator on this device, from 0 in time order
  RowName stage;
  std::string kernel;
  std::int64_t start_ns = 0;  // since the recording began
  std::int64_t duration_ns = 0;
};

// What a rank does in one group of processes by one operation. Only of groups that the recording
// names.
struct GroupUse {
  std::string device;
  std::string communicator;
  std::string operation;    // "all_reduce", "send"; as recorded where it is not known
  std::string description;  // of the group, in the words of the program; may be empty
  std::string ranks;        // of the group: "0-7", "0-56 by 8", "0, 3, 5"; empty: not recorded
  std::int64_t size = 0;    // 0: not recorded
  std::int64_t calls = 0;
  std::int64_t total_ns = 0;
  // Of the model's layers, in whole passes: how many there are, how many contain a call, and the
  // calls in them.
  std::int64_t forward_layers = 0;
  std::int64_t forward_layers_with = 0;
  std::int64_t forward_calls = 0;
  std::int64_t backward_layers = 0;
  std::int64_t backward_calls = 0;
};

// All collectives of a recording.
struct Collectives {
  std::vector<CollectiveLaunch> launches;  // by device, then in time; without point-to-point
  std::vector<GroupUse> groups;            // by device, communicator, operation
  std::string communicators_by;            // how they are identified, in words; may be empty
  std::int64_t num_left_out = 0;           // beyond the first kMostLaunches of a communicator
};
inline constexpr std::int64_t kMostLaunches = 4096;

// Separate from profile(), because only summaries for other ranks need it. Times count from
// `start_ns`, when the recording began.
Collectives find_collectives(const Trace& trace, const Rules& rules, const Stages& stages,
                             const Attribution& attribution, const Structure& structure,
                             std::int64_t start_ns);

// Sorted ranks as a short text: "0-7", "0-56 by 8", "0, 3, 5".
std::string ranks_text(const std::vector<std::int64_t>& ranks);

}  // namespace gpuwhy
