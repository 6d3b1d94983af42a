// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "analysis/profile.h"

namespace llmprof {

// A launch of a communication kernel on one GPU.
struct CollectiveLaunch {
  std::string device;
  std::string communicator;
  std::int64_t sequence = 0;  // of the communicator on this device, from 0 in time order
  std::string stage;
  std::string kernel;
  std::int64_t start_ns = 0;  // since the recording began
  std::int64_t duration_ns = 0;
};

// All collectives of a recording.
struct Collectives {
  std::vector<CollectiveLaunch> launches;  // by device, then in time
  std::string communicators_by;            // how they are identified, in words; may be empty
  std::int64_t num_left_out = 0;           // beyond the first kMostLaunches of a communicator
};
inline constexpr std::int64_t kMostLaunches = 4096;

// Separate from profile(), because only summaries for other ranks need it. The profile must have a
// trace.
Collectives find_collectives(const Profile& profile);

}  // namespace llmprof
