// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cli/command.h"
#include "cli/commands/fleet_target.h"

namespace gpuwhy {

// An upload of summaries.
struct PushRequest {
  FleetTargetOptions target;
  std::vector<std::string> files;  // or folders; none: only what waits
  std::string spool;               // empty: one for each target below the user's own state
  std::int64_t batch_rows = 200'000;
  std::int64_t wait_s = 60;
  bool sends_again = false;
  bool retries_failed = false;  // what the server refused in an earlier push
};

// Uploads and says what was sent. Returns an exit code. Throws kEnvironment if batches still wait.
int push_summaries(const PushRequest& request, Context& context);

}  // namespace gpuwhy
