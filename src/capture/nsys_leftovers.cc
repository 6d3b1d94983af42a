// SPDX-License-Identifier: Apache-2.0
//
// Shared memory that a killed nsys left behind.
//
// nsys keeps its sessions in shared memory: NSys-VERSION, quadd-agent-instance-* and semaphores.
// Killed at the wrong moment it leaves them in a state that no later nsys gets over, under any
// user, while `nsys sessions list` is empty. Removing them heals it; removing those of a live nsys
// would break that one, so in every doubt they stay.
//
// What this gets wrong: a process in another container that shares /dev/shm is not seen. So files
// that were touched within the last minute are left alone.
#include "capture/nsys_leftovers.h"

#include <algorithm>
#include <ctime>
#include <set>
#include <string_view>
#include <system_error>

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/text.h"
#include "capture/processes.h"

namespace llmprof {
namespace {

namespace fs = std::filesystem;

constexpr const char* kSharedMemory = "/dev/shm";
constexpr std::time_t kLeastAgeSeconds = 60;

bool starts_like_one_of(std::string_view name, const std::vector<std::string_view>& starts) {
  return std::any_of(starts.begin(), starts.end(),
                     [&](std::string_view start) { return name.starts_with(start); });
}

bool is_of_nsys(const RunningProcess& process) {
  return !process.is_zombie &&
         starts_like_one_of(process.name, {"nsys", "nsight-sys", "Qdstrm", "quadd"});
}

// Ours, a plain file, and left alone for a while.
bool is_old_file_of_mine(const fs::path& path, std::chrono::system_clock::time_point now) {
  struct stat facts {};
  if (::lstat(path.c_str(), &facts) != 0 || !S_ISREG(facts.st_mode) ||
      facts.st_uid != ::geteuid()) {
    return false;
  }
  return std::max(facts.st_mtime, facts.st_ctime) + kLeastAgeSeconds <=
         std::chrono::system_clock::to_time_t(now);
}

// Names in /dev/shm that a process has open or mapped.
void add_used(const System& system, int pid, std::set<std::string>& used) {
  const std::string folder = std::string(kSharedMemory) + "/";
  std::error_code failure;
  for (const auto& entry :
       fs::directory_iterator(system.at(fmt::format("/proc/{}/fd", pid)), failure)) {
    std::error_code ignored;
    const std::string target = fs::read_symlink(entry.path(), ignored).string();
    if (target.starts_with(folder)) {
      used.insert(target.substr(folder.size()));
    }
  }
  const std::string maps = read_pseudo_file(system.at(fmt::format("/proc/{}/maps", pid)));
  for (const std::string_view line : split(maps, '\n')) {
    if (const std::size_t at = line.find(folder); at != std::string_view::npos) {
      used.emplace(line.substr(at + folder.size()));
    }
  }
}

}  // namespace

std::vector<fs::path> find_nsys_leftovers(const System& system,
                                          std::chrono::system_clock::time_point now) {
  std::vector<fs::path> found;
  std::error_code failure;
  for (const auto& entry : fs::directory_iterator(system.at(kSharedMemory), failure)) {
    const std::string name = entry.path().filename().string();
    if (starts_like_one_of(name, {"NSys-", "quadd-agent-instance-", "sem.nsys_sem_"}) &&
        is_old_file_of_mine(entry.path(), now)) {
      found.push_back(entry.path());
    }
  }
  if (found.empty()) {
    return found;
  }
  const std::vector<RunningProcess> processes = all_processes(system);
  if (std::any_of(processes.begin(), processes.end(), is_of_nsys)) {
    return {};
  }
  std::set<std::string> used;
  for (const RunningProcess& process : processes) {
    add_used(system, process.pid, used);
  }
  std::erase_if(found,
                [&](const fs::path& path) { return used.contains(path.filename().string()); });
  std::sort(found.begin(), found.end());
  return found;
}

std::vector<fs::path> remove_nsys_leftovers(const System& system,
                                            std::chrono::system_clock::time_point now) {
  std::vector<fs::path> removed;
  for (const fs::path& path : find_nsys_leftovers(system, now)) {
    std::error_code failure;
    if (fs::remove(path, failure)) {
      removed.push_back(path);
    }
  }
  return removed;
}

}  // namespace llmprof
