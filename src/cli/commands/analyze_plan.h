// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "cli/command.h"

namespace llmprof {

// llmprof analyze --plan: what reading these files will take, from their first bytes alone.
struct PlanRequest {
  std::vector<std::string> files;
  std::string out;           // empty: nothing is written
  std::string trace_budget;  // as given
  std::string memory_limit;  // as given; empty: what is free here
  bool json = false;
};
// kExitOk if all fit, else kExitEnvironment.
int print_plans(const PlanRequest& asked, Context& context);

}  // namespace llmprof
