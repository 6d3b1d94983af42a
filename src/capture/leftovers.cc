// SPDX-License-Identifier: Apache-2.0
//
// A run that was killed cannot clean up: its workload may still hold a GPU, its bundle looks almost
// like one. Both are found from what the run wrote down while it lived: a file in the bundle that
// names its process, and a variable in the environment of everything it started.
//
// A process is recognised by its number and its start time, because numbers are used again.
// Processes of other users cannot be looked into and go unseen.
#include "capture/leftovers.h"

#include <algorithm>
#include <charconv>
#include <optional>

#include <fmt/format.h>
#include <unistd.h>

#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "base/text.h"

namespace llmprof {
namespace {

namespace fs = std::filesystem;

// Field 22 of /proc/<pid>/stat, counted from the state behind the name; empty: no such process.
std::string start_time_of(const System& system, int pid) {
  const std::string stat = read_pseudo_file(system.at(fmt::format("/proc/{}/stat", pid)));
  const std::size_t close = stat.rfind(')');
  if (close == std::string::npos || close + 2 > stat.size()) {
    return "";
  }
  const std::string rest = stat.substr(close + 2);
  const auto fields = split(rest, ' ');
  constexpr std::size_t kStartTime = 19;  // 22nd field, the first two stand before the state
  return fields.size() > kStartTime ? std::string(fields[kStartTime]) : "";
}

// Whether the process that works on a bundle is alive.
bool is_at_work(const System& system, const fs::path& bundle) {
  try {
    const std::string name = (bundle / kRunningFile).string();
    const Json running = parse_json(read_file(name), name);
    const std::string start = start_time_of(system, running.at("pid").get<int>());
    return !start.empty() && start == running.at("start_time").get<std::string>();
  } catch (const Error&) {
    return false;
  } catch (const Json::exception&) {
    return false;
  }
}

// The bundle a process belongs to, from its environment.
std::optional<fs::path> run_of(const fs::path& process_folder) {
  const std::string environment = read_pseudo_file(process_folder / "environ");
  const std::string wanted = std::string(kRunVariable) + "=";
  for (const std::string_view entry : split(environment, '\0')) {
    if (entry.starts_with(wanted)) {
      return fs::path(entry.substr(wanted.size()));
    }
  }
  return std::nullopt;
}

}  // namespace

std::string running_text(const std::string& session) {
  const int pid = ::getpid();
  Json document = json_document("running", 1);
  document["pid"] = pid;
  document["start_time"] = start_time_of(System{}, pid);
  document["session"] = session;
  return to_json_text(document);
}

Leftovers find_leftovers(const System& system, const fs::path& artifacts_dir) {
  Leftovers found;
  std::error_code failure;
  for (const auto& entry : fs::directory_iterator(artifacts_dir, failure)) {
    std::error_code ignored;
    if (!fs::exists(entry.path() / kRunningFile, ignored)) {
      continue;
    }
    (is_at_work(system, entry.path()) ? found.running : found.bundles).push_back(entry.path());
  }
  std::sort(found.bundles.begin(), found.bundles.end());
  for (const auto& entry : fs::directory_iterator(system.at("/proc"), failure)) {
    const std::string name = entry.path().filename().string();
    int pid = 0;
    const auto [end, bad] = std::from_chars(name.data(), name.data() + name.size(), pid);
    if (bad != std::errc() || end != name.data() + name.size() || pid == ::getpid()) {
      continue;
    }
    const auto bundle = run_of(entry.path());
    if (bundle && !is_at_work(system, *bundle)) {
      const std::string comm = read_pseudo_file(entry.path() / "comm");
      found.processes.push_back({pid, std::string(trim(comm)), *bundle});
    }
  }
  std::sort(found.processes.begin(), found.processes.end(),
            [](const auto& a, const auto& b) { return a.pid < b.pid; });
  return found;
}

}  // namespace llmprof
