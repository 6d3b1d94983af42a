// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "cli/command.h"
#include "session/record/run.h"

namespace gpuwhy {

struct RunCommandOptions {
  RunRequest request;
  std::string progress = "auto";
  bool dry_run = false;
  bool propagate_exit = false;
  bool is_one_of_many = false;  // says of itself only what went wrong
  std::optional<std::int64_t> num_repeats;
  std::vector<std::string> against;
  std::string like;  // a bundle to make again
  bool yes = false;
  std::set<std::string>* told = nullptr;  // of several runs: what was printed that they lack
};

// The table row of the command, with its options in `options`.
Command run_command_into(const std::shared_ptr<RunCommandOptions>& options);

// The request as words of gpuwhy run.
std::vector<std::string> request_words(const RunRequest& request);

// --like: the options of a bundle's run, after what it means here was shown and confirmed.
RunCommandOptions options_like(const RunCommandOptions& given, Context& context);

// One run, one bundle. The caller says where the bundle is.
RunOutcome run_once(const RunCommandOptions& options, Context& context);

// --repeat and --against: many runs, and what they say together.
int run_repeats(const RunCommandOptions& options, Context& context);

}  // namespace gpuwhy
