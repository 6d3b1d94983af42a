// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "analysis/profile.h"

namespace llmprof {

// A launch of a communication kernel, as one GPU saw it.
struct CollectiveLaunch {
  std::string device;
  std::string communicator;
  std::int64_t sequence = 0;  // among those of the communicator on this device, from 0 in time
  std::string stage;
  std::string kernel;
  std::int64_t start_ns = 0;  // since the recording began
  std::int64_t duration_ns = 0;
};

struct Collectives {
  std::vector<CollectiveLaunch> launches;  // by device, then in time
  std::string communicators_by;            // how they are told, in words; empty without launches
  std::int64_t num_left_out = 0;           // behind the first kMostLaunches of a communicator
};
inline constexpr std::int64_t kMostLaunches = 4096;

// Apart from profile(): only what is handed on to other ranks needs it. The profile has a trace.
Collectives find_collectives(const Profile& profile);

}  // namespace llmprof
