// SPDX-License-Identifier: Apache-2.0
#include "capture/nsys_leftovers.h"

#include <chrono>
#include <csignal>
#include <fstream>
#include <string_view>

#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "temporary.h"
#include "testing.h"

namespace gpuwhy {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr std::string_view kBegun("\1\0\0\0more", 8);
constexpr std::string_view kOverwritten("\0\0\xff\xffmore", 8);
constexpr std::string_view kFinished("\2\0\0\0more", 8);

// A machine on which nsys was killed an hour ago.
class NsysLeftoversTest : public testing::Test {
 protected:
  NsysLeftoversTest() {
    for (const char* name :
         {"NSys-2025.5.1", "quadd-agent-instance-17", "sem.nsys_sem_4", "other"}) {
      write("dev/shm/" + std::string(name), "");
    }
    write("dev/shm/NSys-2025.5.1", std::string(kFinished));
    system.root = directory.path();
  }

  void write(const std::string& name, const std::string& text) {
    const fs::path path = directory.path() / name;
    fs::create_directories(path.parent_path());
    std::ofstream(path) << text;
  }

  // As /proc shows it.
  void add_process(int pid, const std::string& name, const std::string& maps = "") {
    const std::string folder = "proc/" + std::to_string(pid);
    write(folder + "/stat", std::to_string(pid) + " (" + name +
                                ") S 1 1 1 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 100 0 0\n");
    write(folder + "/maps", maps);
  }

  std::string shared_memory(const std::string& name) {
    return (directory.path() / "dev/shm" / name).string();
  }

  void add_open(int pid, const std::string& name) {
    const fs::path folder = directory.path() / "proc" / std::to_string(pid) / "fd";
    fs::create_directories(folder);
    fs::create_symlink(shared_memory(name), folder / "5");
  }

  std::vector<int> hung(std::chrono::seconds age = std::chrono::hours(1)) {
    std::vector<int> pids;
    for (const RunningProcess& agent :
         find_nsys_leftovers(system, std::chrono::system_clock::now() + age).hung_agents) {
      pids.push_back(agent.pid);
    }
    return pids;
  }

  // Files of a test cannot be old by their change time: the clock of the machine is not the test's.
  std::vector<std::string> found(std::chrono::seconds age = std::chrono::hours(1)) {
    std::vector<std::string> names;
    for (const fs::path& path :
         find_nsys_leftovers(system, std::chrono::system_clock::now() + age).files) {
      names.push_back(path.filename().string());
    }
    return names;
  }

  TemporaryDirectory directory;
  System system;
};

TEST_F(NsysLeftoversTest, FilesOfADeadNsysAreFound) {
  add_process(100, "bash");
  EXPECT_THAT(found(), ElementsAre("NSys-2025.5.1", "quadd-agent-instance-17", "sem.nsys_sem_4"));
}

TEST_F(NsysLeftoversTest, NothingIsLeftoverWhileAnNsysRuns) {
  for (const char* name : {"nsys", "nsys-launcher", "QdstrmImporter"}) {
    add_process(100, name);
    EXPECT_THAT(found(), IsEmpty()) << name;
  }
}

TEST_F(NsysLeftoversTest, WhatAProcessHasMappedOrOpenStays) {
  add_process(100, "python",
              "7f00-7f01 rw-s 00000000 00:1a 3 " + shared_memory("NSys-2025.5.1") + "\n");
  add_process(101, "python");
  add_open(101, "sem.nsys_sem_4");
  EXPECT_THAT(found(), ElementsAre("quadd-agent-instance-17"));
}

TEST_F(NsysLeftoversTest, AnAgentThatWaitsForUnfinishedSessionsIsHung) {
  add_process(100, "nsys");
  add_open(100, "NSys-2025.5.1");
  add_process(101, "nsys");  // waits for the lock that the first one holds
  for (const std::string_view unfinished : {std::string_view(), kBegun, kOverwritten}) {
    write("dev/shm/NSys-2025.5.1", std::string(unfinished));
    EXPECT_THAT(hung(), ElementsAre(100));
    EXPECT_THAT(found(), ElementsAre("NSys-2025.5.1"));
    EXPECT_THAT(hung(std::chrono::seconds(0)), IsEmpty()) << "it may be finished yet";
    EXPECT_THAT(found(std::chrono::seconds(0)), IsEmpty());
  }
}

TEST_F(NsysLeftoversTest, AnAgentOfFinishedSessionsWorks) {
  add_process(100, "nsys");
  add_open(100, "NSys-2025.5.1");
  EXPECT_THAT(hung(), IsEmpty());
  EXPECT_THAT(found(), IsEmpty());
}

TEST_F(NsysLeftoversTest, AnAgentWithSharedMemoryOfItsOwnWorks) {
  write("dev/shm/NSys-2025.5.1", "");
  add_process(
      100, "nsys",
      "7f00-7f01 rw-s 00000000 00:1a 3 " + shared_memory("quadd-agent-instance-100") + "\n");
  add_open(100, "NSys-2025.5.1");
  EXPECT_THAT(hung(), IsEmpty());
  EXPECT_THAT(found(), IsEmpty());
}

TEST_F(NsysLeftoversTest, AProgramThatReadsUnfinishedSessionsIsNoAgent) {
  write("dev/shm/NSys-2025.5.1", "");
  add_process(100, "python");
  add_open(100, "NSys-2025.5.1");
  EXPECT_THAT(hung(), IsEmpty());
  EXPECT_THAT(found(), ElementsAre("quadd-agent-instance-17", "sem.nsys_sem_4"));
}

TEST_F(NsysLeftoversTest, AHungAgentIsEnded) {
  const pid_t agent = ::fork();
  ASSERT_GE(agent, 0);
  if (agent == 0) {
    ::pause();
    ::_exit(0);
  }
  write("dev/shm/NSys-2025.5.1", "");
  add_process(agent, "nsys");
  add_open(agent, "NSys-2025.5.1");
  const NsysLeftovers gone =
      remove_nsys_leftovers(system, std::chrono::system_clock::now() + std::chrono::hours(1));
  ::kill(agent, SIGKILL);  // a second signal is ignored where the first one has ended it
  int status = 0;
  ASSERT_EQ(::waitpid(agent, &status, 0), agent);
  EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM) << status;
  ASSERT_EQ(gone.hung_agents.size(), 1);
  EXPECT_EQ(gone.hung_agents[0].pid, agent);
  EXPECT_FALSE(fs::exists(directory.path() / "dev/shm/NSys-2025.5.1"));
}

TEST_F(NsysLeftoversTest, ANewFileStays) {
  EXPECT_THAT(found(std::chrono::seconds(0)), IsEmpty());
}

TEST_F(NsysLeftoversTest, LinksAndFilesOfOthersStay) {
  fs::remove(directory.path() / "dev/shm/NSys-2025.5.1");
  fs::create_symlink("/etc/passwd", directory.path() / "dev/shm/NSys-2025.5.1");
  fs::remove(directory.path() / "dev/shm/quadd-agent-instance-17");
  EXPECT_THAT(found(), ElementsAre("sem.nsys_sem_4"));
  if (::geteuid() == 0) {
    ASSERT_EQ(::chown((directory.path() / "dev/shm/sem.nsys_sem_4").c_str(), 65534, 65534), 0);
    EXPECT_THAT(found(), IsEmpty());
  }
}

TEST_F(NsysLeftoversTest, OnlyTheyAreRemoved) {
  EXPECT_EQ(remove_nsys_leftovers(system, std::chrono::system_clock::now() + std::chrono::hours(1))
                .files.size(),
            3);
  EXPECT_TRUE(fs::exists(directory.path() / "dev/shm/other"));
  EXPECT_FALSE(fs::exists(directory.path() / "dev/shm/NSys-2025.5.1"));
}

TEST(AgentFailure, IsKnownByWhatNsysPrintsAlone) {
  for (const char* said : {"Agent launcher failed.\n", "End of file\n", "Connection reset by peer",
                           "error: Local Endpoint is not available (1)\n"}) {
    EXPECT_TRUE(is_agent_failure(said)) << said;
  }
  for (const char* said : {"", "ValueError: End of file", "a curl error: Connection reset by peer",
                           "The program said: Agent launcher failed.\n"}) {
    EXPECT_FALSE(is_agent_failure(said)) << said;
  }
  EXPECT_TRUE(is_line_of_agent_failure("Agent launcher failed."));
  EXPECT_FALSE(is_line_of_agent_failure("End of file"));
}

}  // namespace
}  // namespace gpuwhy
