// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cli/command.h"

namespace gpuwhy {

// gpuwhy analyze --memory-need: what reading these files will take, from their first bytes alone.
struct NeedRequest {
  std::vector<std::string> files;
  std::string out;                                  // empty: nothing is written
  std::uint64_t trace_budget_bytes = 0;             // 0: no trace.pftrace is written
  std::optional<std::uint64_t> memory_limit_bytes;  // absent: what is free here
  unsigned num_threads = 1;
  bool json = false;
};
// kExitOk if they fit, else kExitEnvironment.
int print_memory_need(const NeedRequest& options, Context& context);

}  // namespace gpuwhy
