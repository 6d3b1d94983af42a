// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "capture/system.h"

namespace gpuwhy {

// How a kind of program is run under a profiler: one file of conf/workload/.
struct WorkloadSettings {
  std::vector<std::string> arguments;              // appended to the command
  std::map<std::string, std::string> environment;  // set unless the user has set it
  std::vector<std::string> strip_environment;      // removed under a profiler
};

// The command to start: the program found on PATH, the preset's arguments after the user's. Throws
// kUsage if there is no such program.
std::vector<std::string> build_work_argv(const System& system, const WorkloadSettings& settings,
                                         const std::vector<std::string>& command);

// The environment of the workload. `is_profiled`: another profiler in the workload would occupy
// CUPTI, which has only one client, so variables that enable it are removed and reported in
// `notes`.
std::map<std::string, std::string> work_environment(const System& system,
                                                    const WorkloadSettings& settings,
                                                    bool is_profiled,
                                                    std::vector<std::string>& notes);

// The position in a command line where one of `words` is a program or a module; nullopt if none is.
// After a launcher and an interpreter, the last such word determines the kind of program.
std::optional<std::size_t> position_of(const std::vector<std::string>& command,
                                       const std::vector<std::string>& words);

// The command line for people to read and paste, quoted for a POSIX shell. It is never run through
// one.
std::string shell_text(const std::vector<std::string>& argv);

// The words of a command line, as a POSIX shell splits them: blanks, quotes and backslashes, but no
// variables, patterns or pipes. Throws kUsage for an open quote and for what only a shell can do.
std::vector<std::string> split_command(std::string_view text);

// The command that starts this program again.
std::vector<std::string> own_command(const std::string& verb);

}  // namespace gpuwhy
