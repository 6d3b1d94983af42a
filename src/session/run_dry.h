// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>
#include <vector>

#include "session/run_session.h"

namespace llmprof {

// The commands a run would start, for --dry-run: one text a pass, each with its environment.
struct DryCommand {
  std::string pass;
  std::map<std::string, std::string> environment;  // added to the user's
  std::vector<std::string> argv;
};
std::vector<DryCommand> dry_commands(const RunSetup& setup);

}  // namespace llmprof
