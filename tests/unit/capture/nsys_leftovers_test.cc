// SPDX-License-Identifier: Apache-2.0
#include "capture/nsys_leftovers.h"

#include <chrono>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "temporary.h"

namespace llmprof {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

// A machine on which nsys was killed an hour ago.
class NsysLeftoversTest : public testing::Test {
 protected:
  NsysLeftoversTest() {
    for (const char* name :
         {"NSys-2025.5.1", "quadd-agent-instance-17", "sem.nsys_sem_4", "other"}) {
      write("dev/shm/" + std::string(name), "");
    }
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

  // Files of a test cannot be old by their change time: the clock of the machine is not the test's.
  std::vector<std::string> found(std::chrono::seconds age = std::chrono::hours(1)) {
    std::vector<std::string> names;
    for (const fs::path& path :
         find_nsys_leftovers(system, std::chrono::system_clock::now() + age)) {
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
  add_process(100, "python", "7f00-7f01 rw-s 00000000 00:1a 3 /dev/shm/NSys-2025.5.1\n");
  fs::create_directories(directory.path() / "proc/101/fd");
  add_process(101, "python");
  fs::create_symlink("/dev/shm/sem.nsys_sem_4", directory.path() / "proc/101/fd/5");
  EXPECT_THAT(found(), ElementsAre("quadd-agent-instance-17"));
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
                .size(),
            3);
  EXPECT_TRUE(fs::exists(directory.path() / "dev/shm/other"));
  EXPECT_FALSE(fs::exists(directory.path() / "dev/shm/NSys-2025.5.1"));
}

}  // namespace
}  // namespace llmprof
