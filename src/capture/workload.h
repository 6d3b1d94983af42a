// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "capture/system.h"

namespace llmprof {

// How a kind of program wants to be run under a profiler: a file of conf/workload/.
struct WorkloadSettings {
  std::vector<std::string> arguments;              // appended to the command
  std::map<std::string, std::string> environment;  // set unless the user has set it
  std::vector<std::string> strip_environment;      // removed under a profiler
};

// The command as it is started: the program found on PATH, the preset's arguments behind the
// user's. Throws kUsage when there is no such program.
std::vector<std::string> build_work_argv(const System& system, const WorkloadSettings& settings,
                                         const std::vector<std::string>& command);

// The environment the workload gets. `is_profiled`: another profiler of the workload's own would
// take the one place CUPTI has, so what switches it on is removed and told in `notes`.
std::map<std::string, std::string> work_environment(const System& system,
                                                    const WorkloadSettings& settings,
                                                    bool is_profiled,
                                                    std::vector<std::string>& notes);

// Where in a command line one of `words` stands as a program or a module, or nothing: behind a
// launcher and an interpreter the last such word tells the kind of a program.
std::optional<std::size_t> position_of(const std::vector<std::string>& command,
                                       const std::vector<std::string>& words);

// The command line as one would type it, for people to read and paste: words that need it are
// quoted for a POSIX shell. Nothing here ever runs it through one.
std::string shell_text(const std::vector<std::string>& argv);

}  // namespace llmprof
