// SPDX-License-Identifier: Apache-2.0
//
// List of running processes with their parents, read from /proc.
#include "capture/processes.h"

#include <algorithm>
#include <map>

#include <fmt/format.h>
#include <unistd.h>

#include "base/file.h"
#include "base/parse_number.h"
#include "base/text.h"

namespace gpuwhy {
namespace {

namespace fs = std::filesystem;

// Fields of /proc/<pid>/stat after the name (proc(5) counts them from 3).
constexpr std::size_t kState = 0;
constexpr std::size_t kParent = 1;
constexpr std::size_t kStartTime = 19;

}  // namespace

std::string RunningProcess::text() const {
  return fmt::format("{} (pid {})", name, pid);
}

std::optional<RunningProcess> find_process(const System& system, int pid) {
  // "12 (name) S 1 ...": the name may contain anything, so it ends at the last ')'.
  const std::string stat = read_pseudo_file(system.at(fmt::format("/proc/{}/stat", pid)));
  const std::size_t open = stat.find('(');
  const std::size_t close = stat.rfind(')');
  if (open == std::string::npos || close == std::string::npos || close + 2 > stat.size()) {
    return std::nullopt;
  }
  const std::string rest = stat.substr(close + 2);
  const auto fields = split(rest, ' ');
  if (fields.size() <= kStartTime) {
    return std::nullopt;
  }
  RunningProcess process;
  process.pid = pid;
  process.parent = parse_all<int>(fields[kParent]).value_or(0);
  process.name = stat.substr(open + 1, close - open - 1);
  process.start_time = fields[kStartTime];
  process.is_zombie = fields[kState] == "Z" || fields[kState] == "X";
  return process;
}

std::vector<RunningProcess> all_processes(const System& system) {
  std::vector<RunningProcess> found;
  std::error_code failure;
  for (const auto& entry : fs::directory_iterator(system.at("/proc"), failure)) {
    const std::string name = entry.path().filename().string();
    if (const auto pid = parse_all<int>(name)) {
      if (auto process = find_process(system, *pid)) {
        found.push_back(std::move(*process));
      }
    }
  }
  std::ranges::sort(found, {}, &RunningProcess::pid);
  return found;
}

bool is_profiler(const RunningProcess& process) {
  constexpr std::string_view kTools[] = {"nsys", "ncu", "TreeLauncher", "QdstrmImporter"};
  return std::ranges::any_of(
      kTools, [&](std::string_view start) { return process.name.starts_with(start); });
}

std::vector<RunningProcess> descendants() {
  std::map<int, std::vector<RunningProcess>> children;
  for (RunningProcess& process : all_processes(System{})) {
    if (!process.is_zombie) {
      children[process.parent].push_back(std::move(process));
    }
  }
  std::vector<RunningProcess> found = children[::getpid()];
  for (std::size_t i = 0; i < found.size(); ++i) {
    const std::vector<RunningProcess> below = children[found[i].pid];
    found.insert(found.end(), below.begin(), below.end());
  }
  return found;
}

}  // namespace gpuwhy
