// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace gpuwhy {

// The machine as the program sees it: environment variables and the root of the file system. Tests
// pass a fake one, to simulate a driver, a permission or a container.
struct System {
  std::map<std::string, std::string> environment;
  std::filesystem::path root = "/";

  // `path` is absolute, as "/proc/driver/nvidia/params".
  std::filesystem::path at(std::string_view path) const {
    return root / std::filesystem::path(path).relative_path();
  }

  // Unset and empty are the same: NAME= never means the empty path.
  std::optional<std::string> variable(const std::string& name) const {
    const auto found = environment.find(name);
    if (found == environment.end() || found->second.empty()) {
      return std::nullopt;
    }
    return found->second;
  }

  std::string temporary_directory() const { return variable("TMPDIR").value_or("/tmp"); }
};

// The real machine: this process's environment.
System this_system();

}  // namespace gpuwhy
