// SPDX-License-Identifier: Apache-2.0
//
// Detection of processes and bundles left behind by killed runs.
//
// A killed run cannot clean up: its workload may still hold a GPU, and its bundle looks almost
// complete. Both are found by what the run wrote while it was alive: a file in the bundle that
// names its process, and a variable in the environment of everything it started.
//
// A process is identified by pid and start time, because pids are reused. Processes of other users
// cannot be inspected and are not found.
#include "capture/stale_runs.h"

#include <algorithm>
#include <climits>
#include <optional>

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "base/text.h"
#include "bundle/layout.h"
#include "capture/processes.h"

namespace gpuwhy {
namespace {

namespace fs = std::filesystem;

// Whether the process that works on a bundle is alive.
bool is_at_work(const System& system, const fs::path& bundle) {
  try {
    const std::string name = (bundle / layout::kRunning).string();
    const Json running = parse_json(read_file(name), name);
    const auto pid = json_integer(running.at("pid"));
    if (!pid || *pid < 1 || *pid > INT_MAX) {
      return false;
    }
    const auto process = find_process(system, static_cast<int>(*pid));
    return process && process->start_time == running.at("start_time").get<std::string>();
  } catch (const Error&) {
    return false;
  } catch (const Json::exception&) {
    return false;
  }
}

bool is_folder_of_mine(const fs::path& path) {
  struct stat facts {};
  return ::lstat(path.c_str(), &facts) == 0 && S_ISDIR(facts.st_mode) &&
         facts.st_uid == ::geteuid();
}

// The scratch folder of an unfinished bundle. The user will be told to remove it, and the bundle
// may come from someone else, so anything that does not look like one of ours is ignored.
std::optional<fs::path> scratch_of(const fs::path& bundle) {
  try {
    const std::string name = (bundle / layout::kRunning).string();
    const fs::path scratch = parse_json(read_file(name), name).at("scratch").get<std::string>();
    const bool is_ours = scratch.is_absolute() && scratch.lexically_normal() == scratch &&
                         scratch.filename().string().starts_with("gpuwhy-");
    return is_ours && is_folder_of_mine(scratch) ? std::optional(scratch) : std::nullopt;
  } catch (const Error&) {
    return std::nullopt;
  } catch (const Json::exception&) {
    return std::nullopt;
  }
}

// The bundle that a process belongs to, from its environment.
std::optional<fs::path> run_of(const System& system, int pid) {
  const std::string environment = read_pseudo_file(system.at(fmt::format("/proc/{}/environ", pid)));
  const std::string wanted = std::string(kRunVariable) + "=";
  for (const std::string_view entry : split(environment, '\0')) {
    if (entry.starts_with(wanted)) {
      return fs::path(entry.substr(wanted.size()));
    }
  }
  return std::nullopt;
}

}  // namespace

std::string running_text(const std::string& session, const fs::path& scratch) {
  const int pid = ::getpid();
  Json document = json_document("running", 1);
  document["pid"] = pid;
  const auto process = find_process(System{}, pid);
  document["start_time"] = process ? process->start_time : "";
  document["session"] = session;
  document["scratch"] = scratch.string();
  return to_json_text(document);
}

Leftovers find_leftovers(const System& system, const fs::path& artifacts_dir) {
  Leftovers found;
  std::error_code failure;
  for (const auto& entry : fs::directory_iterator(artifacts_dir, failure)) {
    std::error_code ignored;
    if (!fs::exists(entry.path() / layout::kRunning, ignored)) {
      continue;
    }
    if (is_at_work(system, entry.path())) {
      found.running.push_back(entry.path());
      continue;
    }
    found.bundles.push_back(entry.path());
    if (const auto scratch = scratch_of(entry.path())) {
      found.scratch.push_back(*scratch);
    }
  }
  // Processes are matched by their environment, because they may have left the process tree of the
  // run.
  std::ranges::sort(found.bundles);
  for (const RunningProcess& process : all_processes(system)) {
    const auto bundle = run_of(system, process.pid);
    if (process.pid != ::getpid() && bundle && !is_at_work(system, *bundle)) {
      found.processes.push_back({process.pid, process.name, *bundle});
    }
  }
  return found;
}

}  // namespace gpuwhy
