// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace gpuwhy {

// The names that `run --mark NAME` takes: programs of these libraries get marks without a change
// of their code. Sorted.
std::vector<std::string> mark_modules();

// Throws kUsage, with the names that exist, if one of `modules` is none of them.
void check_mark_modules(const std::vector<std::string>& modules);

// Writes the modules' Python files and the library they load to `directory`, which it makes. Throws
// kFailure.
void write_mark_modules(const std::filesystem::path& directory);

// Lets every Python process below load the modules from `directory`, before the PYTHONPATH that
// `environment` has. `directory` is absolute.
void add_mark_environment(const std::filesystem::path& directory,
                          const std::vector<std::string>& modules,
                          std::map<std::string, std::string>& environment);

// What the modules wrote down while the program ran.
struct MarkNotes {
  bool is_marked = false;             // at least one process
  std::vector<std::string> not_done;  // sentences, each once, as the program's processes wrote them
};

// Reads the notes in `directory` and removes them, so that the next pass starts without.
MarkNotes take_mark_notes(const std::filesystem::path& directory);

}  // namespace gpuwhy
