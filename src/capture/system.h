// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace llmprof {

// The machine as this program may see it: environment variables and the root of the file system.
// Callers hand over the real one; tests hand over a made one, so that a driver, a permission or a
// container can be there without being there.
struct System {
  std::map<std::string, std::string> environment;
  std::filesystem::path root = "/";

  // `path` is absolute, as "/proc/driver/nvidia/params".
  std::filesystem::path at(std::string_view path) const {
    return root / std::filesystem::path(path).relative_path();
  }

  // Unset and empty are the same: nobody means the empty path by NAME=.
  std::optional<std::string> variable(const std::string& name) const {
    const auto found = environment.find(name);
    if (found == environment.end() || found->second.empty()) {
      return std::nullopt;
    }
    return found->second;
  }

  std::string temporary_directory() const { return variable("TMPDIR").value_or("/tmp"); }
};

// The real one: this process's environment.
System this_system();

}  // namespace llmprof
