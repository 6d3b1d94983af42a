// SPDX-License-Identifier: Apache-2.0
//
// Versions of the profiled program's software, for env.json. It is neither started nor imported.
#pragma once

#include <filesystem>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/json_fwd.h"
#include "capture/system.h"

namespace gpuwhy {

// gpuwhy's own {"version", "commit"}.
Json gpuwhy_json();

// The folders of packages beside an interpreter or script.
std::vector<std::filesystem::path> package_folders(const std::filesystem::path& program);

// {"torch", "2.5.1"} of "torch-2.5.1.dist-info"; the name in lower case, with '-' for '_' and '.'.
std::optional<std::pair<std::string, std::string>> package_of(std::string_view folder);

// A process, as /proc has it.
struct ProcessFiles {
  std::filesystem::path program;  // as it was started: a link of a virtual environment
  std::filesystem::path executable;
  std::set<std::filesystem::path> libraries;  // mapped: of CUDA, Python and engines
  std::set<std::filesystem::path> folders;    // of packages that files are mapped from
};
std::optional<ProcessFiles> files_of_process(const System& system, int pid);

// Of our descendants now, the process with the most libraries: of several, the one furthest from
// the launcher. It replaces `best` unless that has more.
void look_at_programs(std::optional<ProcessFiles>& best);

// What the files of a program say. Unknown values are null, and "reasons" says why.
Json program_json(const std::vector<std::string>& argv, const std::optional<ProcessFiles>& seen);

// {"folder", "commit", "dirty", "reason"} of the repository of the first file of a command line
// that is in one, else of this folder. No program that the repository names is started.
Json source_json(const System& system, const std::vector<std::string>& argv);

}  // namespace gpuwhy
