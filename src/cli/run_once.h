// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "base/json.h"
#include "cli/command.h"

namespace llmprof {

struct RunCommandOptions {
  std::string passes;
  std::string plan;
  std::string progress = "auto";
  bool dry_run = false;
  bool propagate_exit = false;
  bool is_one_of_many = false;  // says of itself only what went wrong
  std::string file;
  std::string repeat;
  std::vector<std::string> against;
  std::vector<std::string> overrides;
  std::vector<std::string> command;
};

struct RunOutcome {
  int code = 0;
  std::filesystem::path bundle;  // empty: nothing was started
  Json metrics;                  // of the bundle
};

// One run, one bundle. The caller says where the bundle is.
RunOutcome run_once(const RunCommandOptions& asked, Context& context);

// --repeat and --against: many runs, and what they say together.
int run_repeats(const RunCommandOptions& asked, Context& context);

}  // namespace llmprof
