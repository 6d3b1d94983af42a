// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/json_fwd.h"
#include "config/compose.h"
#include "results/results.h"
#include "session/record/pass_runner.h"
#include "session/run_progress.h"

namespace gpuwhy {

// A user's request for a run.
struct RunRequest {
  std::string passes;                  // comma-separated; empty: as configured
  std::string plan;                    // a recording to plan ncu from
  std::string out;                     // folder for bundles; empty: as configured
  std::string rules;                   // a file of the user's own; empty: none
  std::vector<std::string> marks;      // STAGE=NAME of ranges, or a module that marks the program
  std::string file;                    // of configuration; empty: the user's own
  std::vector<std::string> overrides;  // of configuration
  std::vector<std::string> command;    // the program and its arguments
  ServerRequest server;                // the program is a server, and gets load
  std::string with;                    // files besides the usual ones: "trace", or none
  std::vector<std::string> words;      // all of it but `out` and `file`, as words of gpuwhy run
};

// How a run ended.
struct RunOutcome {
  int code = 0;  // an ExitCode
  int workload_exit_code = 0;
  std::filesystem::path bundle;  // empty: nothing was started
  Results metrics;               // of the bundle
  SharedJson contract;           // as in its manifest
  std::vector<Breach> breaches;
  std::vector<PassRecord> passes;
};

// The configuration of a run, and sentences for the user. Throws kUsage.
Config config_of(const RunRequest& request, std::vector<std::string>& notes);

// Checks everything that can be checked before the program starts. Throws kUsage, kEnvironment.
RunSetup prepare_run(const RunRequest& request, const System& system);

// {"gpuwhy", "machine", "program"}, as env.json has them.
Json run_facts(const RunSetup& setup, const std::optional<ProcessFiles>& seen, const Json& source);

// All passes, the report and the manifest: one run, one bundle.
RunOutcome execute_run(const RunSetup& setup, const RunRequest& request, const System& system,
                       Progress& progress);

}  // namespace gpuwhy
