// SPDX-License-Identifier: Apache-2.0
//
// Shared memory and waiting agents that a killed nsys left behind.
//
// nsys keeps its sessions in shared memory: NSys-VERSION, quadd-agent-instance-* and semaphores.
// An agent killed while it sets up NSys-VERSION leaves it unfinished: empty, or with a first word
// that says so (Boost.Interprocess: 0 not begun, 1 begun, 2 finished). Many at once can also leave
// it overwritten, with any other word. The next agent takes the lock of nsys' sessions and waits
// for ever for the word to become 2. Every later agent waits for that lock, under any user, and its
// nsys gives up after ten seconds. `nsys sessions list` is empty all the while. Removing the file
// alone does not help: the agent that waits still holds the lock. Without it the other agents end
// by themselves.
//
// Removing what a live nsys uses would break that one, so in every doubt it stays.
//
// What this gets wrong: a process in another container that shares /dev/shm is not seen. So files
// that were touched within the last minute are left alone.
#include "capture/nsys_leftovers.h"

#include <algorithm>
#include <csignal>
#include <cstdint>
#include <ctime>
#include <fstream>
#include <set>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/text.h"
#include "capture/processes.h"

namespace gpuwhy {
namespace {

namespace fs = std::filesystem;

constexpr const char* kSharedMemory = "/dev/shm";
constexpr const char* kSessions = "NSys-";
constexpr const char* kAgent = "quadd-agent-instance-";
constexpr std::time_t kLeastAgeSeconds = 60;
constexpr std::uint32_t kFinishedState = 2;

bool starts_like_one_of(std::string_view name, const std::vector<std::string_view>& starts) {
  return std::ranges::any_of(starts,
                             [&](std::string_view start) { return name.starts_with(start); });
}

bool is_of_nsys(const RunningProcess& process) {
  return !process.is_zombie &&
         starts_like_one_of(process.name, {"nsys", "nsight-sys", "Qdstrm", "quadd"});
}

// A plain file, and left alone for a while.
bool is_old_file(const struct stat& facts, std::chrono::system_clock::time_point now) {
  return S_ISREG(facts.st_mode) && std::max(facts.st_mtime, facts.st_ctime) + kLeastAgeSeconds <=
                                       std::chrono::system_clock::to_time_t(now);
}

bool is_old_file_of_mine(const fs::path& path, std::chrono::system_clock::time_point now) {
  struct stat facts {};
  return ::lstat(path.c_str(), &facts) == 0 && is_old_file(facts, now) &&
         facts.st_uid == ::geteuid();
}

// Old shared memory of nsys' sessions that its creator did not finish.
bool is_unfinished(const fs::path& path, std::chrono::system_clock::time_point now) {
  struct stat facts {};
  if (::stat(path.c_str(), &facts) != 0 || !is_old_file(facts, now)) {
    return false;
  }
  std::uint32_t state = 0;
  if (facts.st_size > 0 &&
      !std::ifstream(path, std::ios::binary).read(reinterpret_cast<char*>(&state), sizeof(state))) {
    return false;
  }
  return state != kFinishedState;
}

std::vector<fs::path> descriptors(const System& system, int pid) {
  std::vector<fs::path> found;
  std::error_code failure;
  for (const auto& entry :
       fs::directory_iterator(system.at(fmt::format("/proc/{}/fd", pid)), failure)) {
    found.push_back(entry.path());
  }
  return found;
}

std::string target_of(const fs::path& link) {
  std::error_code ignored;
  return fs::read_symlink(link, ignored).string();
}

// An agent that works has closed the descriptor after it mapped the shared memory, and has shared
// memory of its own beside it.
bool is_hung_agent(const System& system, const RunningProcess& process,
                   std::chrono::system_clock::time_point now) {
  struct stat facts {};
  if (!is_of_nsys(process) ||
      ::stat(system.at(fmt::format("/proc/{}", process.pid)).c_str(), &facts) != 0 ||
      facts.st_uid != ::geteuid()) {
    return false;
  }
  const std::string sessions = (system.at(kSharedMemory) / kSessions).string();
  const std::vector<fs::path> open = descriptors(system, process.pid);
  const bool waits = std::ranges::any_of(open, [&](const fs::path& link) {
    return target_of(link).starts_with(sessions) && is_unfinished(link, now);
  });
  return waits &&
         read_pseudo_file(system.at(fmt::format("/proc/{}/maps", process.pid))).find(kAgent) ==
             std::string::npos;
}

// Names in /dev/shm that a process has open or mapped.
void add_used(const System& system, int pid, std::set<std::string>& used) {
  const std::string folder = system.at(kSharedMemory).string() + "/";
  for (const fs::path& link : descriptors(system, pid)) {
    if (const std::string target = target_of(link); target.starts_with(folder)) {
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

std::vector<fs::path> find_files(const System& system, const std::vector<RunningProcess>& others,
                                 bool has_hung_agent, std::chrono::system_clock::time_point now) {
  std::vector<fs::path> found;
  std::error_code failure;
  for (const auto& entry : fs::directory_iterator(system.at(kSharedMemory), failure)) {
    const std::string name = entry.path().filename().string();
    if (starts_like_one_of(name, {kSessions, kAgent, "quadd-create-agent-", "sem.nsys_sem_"}) &&
        is_old_file_of_mine(entry.path(), now)) {
      found.push_back(entry.path());
    }
  }
  std::ranges::sort(found);
  if (found.empty()) {
    return found;
  }
  // Of what an agent waits for, no other nsys that runs can make use.
  if (std::ranges::any_of(others, is_of_nsys)) {
    std::erase_if(found, [&](const fs::path& path) {
      return !has_hung_agent || !path.filename().string().starts_with(kSessions) ||
             !is_unfinished(path, now);
    });
    return found;
  }
  std::set<std::string> used;
  for (const RunningProcess& process : others) {
    add_used(system, process.pid, used);
  }
  std::erase_if(found,
                [&](const fs::path& path) { return used.contains(path.filename().string()); });
  return found;
}

// The same process still, not another one with its number.
bool end_process(const System& system, const RunningProcess& process) {
  const auto now = find_process(system, process.pid);
  return now && now->start_time == process.start_time && ::kill(process.pid, SIGTERM) == 0;
}

}  // namespace

bool is_agent_failure(std::string_view said) {
  const std::string_view text = trim(said);
  return text == "End of file" || text == "Connection reset by peer" ||
         is_line_of_agent_failure(text);
}

bool is_line_of_agent_failure(std::string_view line) {
  return line == fmt::format("{}.", kAgentFailed) ||
         line.find("Local Endpoint is not available") != std::string_view::npos;
}

NsysLeftovers find_nsys_leftovers(const System& system, std::chrono::system_clock::time_point now) {
  NsysLeftovers found;
  std::vector<RunningProcess> others;
  for (RunningProcess& process : all_processes(system)) {
    (is_hung_agent(system, process, now) ? found.hung_agents : others)
        .push_back(std::move(process));
  }
  found.files = find_files(system, others, !found.hung_agents.empty(), now);
  return found;
}

// Files first: the agent that gets the lock next must not find them.
NsysLeftovers remove_nsys_leftovers(const System& system,
                                    std::chrono::system_clock::time_point now) {
  NsysLeftovers gone = find_nsys_leftovers(system, now);
  std::erase_if(gone.files, [](const fs::path& path) {
    std::error_code failure;
    return !fs::remove(path, failure);
  });
  std::erase_if(gone.hung_agents,
                [&](const RunningProcess& agent) { return !end_process(system, agent); });
  return gone;
}

}  // namespace gpuwhy
