// SPDX-License-Identifier: Apache-2.0
#include "base/temporary_file.h"

#include <chrono>
#include <memory>
#include <thread>
#include <vector>

#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"
#include "temporary.h"
#include "testing.h"

namespace gpuwhy {
namespace {

namespace fs = std::filesystem;

std::size_t names_in(const fs::path& directory) {
  return static_cast<std::size_t>(
      std::distance(fs::directory_iterator(directory), fs::directory_iterator()));
}

TEST(TemporaryFile, NamesThatAreTakenAreLeftAlone) {
  const TemporaryDirectory directory;
  const fs::path victim = directory.add("victim", "old");
  fs::create_directory(directory.path() / "out");
  constexpr int kPlanted = 20;
  const TemporaryFile first(directory.path() / "out/a");  // tells the number that comes next
  const std::string name = first.name().filename().string();
  const int next = std::stoi(name.substr(name.rfind('-') + 1)) + 1;
  for (int i = next; i < next + kPlanted; ++i) {
    fs::create_symlink(victim,
                       directory.path() / "out" /
                           (".a." + std::to_string(::getpid()) + "-" + std::to_string(i) + ".tmp"));
  }
  write_file(directory.path() / "out/a", "new");
  EXPECT_EQ(read_file(directory.path() / "out/a"), "new");
  EXPECT_EQ(read_file(victim), "old");
  EXPECT_EQ(names_in(directory.path() / "out"), kPlanted + 2U);
}

TEST(TemporaryFile, ALinkUnderTheFinalNameIsReplaced) {
  const TemporaryDirectory directory;
  const fs::path victim = directory.add("victim", "old");
  fs::create_symlink(victim, directory.path() / "report.md");
  write_file(directory.path() / "report.md", "new");
  EXPECT_EQ(read_file(victim), "old");
  EXPECT_FALSE(fs::is_symlink(directory.path() / "report.md"));
}

TEST(TemporaryFile, ADeviceOrAPipeIsNotReplaced) {
  const TemporaryDirectory directory;
  const fs::path pipe = directory.path() / "pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  fs::create_symlink("/dev/null", directory.path() / "link");
  for (const fs::path& path : {pipe, directory.path() / "link", fs::path("/dev/null")}) {
    expect_error([&] { write_file(path, "text"); }, ErrorKind::kFailure,
                 HasSubstr("a device or a pipe"), _);
  }
  EXPECT_TRUE(fs::is_fifo(pipe));
  EXPECT_TRUE(fs::is_symlink(directory.path() / "link"));
  EXPECT_EQ(names_in(directory.path()), 2U);
}

// A handler ends the program, so it runs in a child.
template <typename Body>
void in_child(Body body) {
  const pid_t child = ::fork();
  if (child == 0) {
    body();
    ::_exit(0);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

TEST(TemporaryFile, AHandlerRemovesWhatIsNotFinished) {
  const TemporaryDirectory directory;
  in_child([&] {
    const FileWriter unfinished(directory.path() / "trace");
    write_file(directory.path() / "whole", "x");
    if (names_in(directory.path()) != 2) {
      ::_exit(1);
    }
    remove_doomed_files();
    ::_exit(0);
  });
  EXPECT_EQ(names_in(directory.path()), 1U);
  EXPECT_TRUE(fs::exists(directory.path() / "whole"));
}

TEST(TemporaryFile, AHandlerRemovesAnyNumberOfThem) {
  const TemporaryDirectory directory;
  in_child([&] {
    for (int round = 0; round < 2; ++round) {  // the second finds rows of the first
      std::vector<std::unique_ptr<TemporaryFile>> many;
      for (int i = 0; i < 300; ++i) {
        many.push_back(std::make_unique<TemporaryFile>(directory.path() / "many"));
      }
      if (names_in(directory.path()) != 300) {
        ::_exit(1);
      }
      if (round == 1) {
        remove_doomed_files();
        ::_exit(0);
      }
    }
  });
  EXPECT_EQ(names_in(directory.path()), 0U);
}

// Threads go on while a handler runs: none creates a file that it has not seen.
TEST(TemporaryFile, NoThreadCreatesOneWhileAHandlerRuns) {
  const TemporaryDirectory directory;
  for (int round = 0; round < 20; ++round) {
    in_child([&] {
      std::vector<std::thread> threads;
      for (int i = 0; i < 4; ++i) {
        threads.emplace_back([&] {
          while (true) {
            const TemporaryFile file(directory.path() / "many");
          }
        });
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
      remove_doomed_files();
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
      ::_exit(0);
    });
    ASSERT_EQ(names_in(directory.path()), 0U);
  }
}

TEST(DoomedFile, ManyThreadsShareTheTable) {
  const TemporaryDirectory directory;
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 4; ++thread) {
    threads.emplace_back([&directory, thread] {
      for (int i = 0; i < 200; ++i) {
        const DoomedFile doomed(directory.add(fmt::format("{}-{}", thread, i), "x"));
        DoomedFile spared(directory.path() / "spared");
        spared.spare();
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  EXPECT_EQ(names_in(directory.path()), 0U);
}

TEST(DoomedFile, IsRemovedAtItsEndUnlessSpared) {
  const TemporaryDirectory directory;
  const fs::path kept = directory.add("kept", "x");
  const fs::path gone = directory.add("gone", "x");
  {
    DoomedFile spared(kept);
    const DoomedFile doomed(gone);
    spared.spare();
  }
  EXPECT_TRUE(fs::exists(kept));
  EXPECT_FALSE(fs::exists(gone));
}

TEST(InnerFolder, IsNeverALink) {
  const TemporaryDirectory directory;
  fs::create_directory(directory.path() / "victim");
  fs::create_symlink(directory.path() / "victim", directory.path() / "link");
  make_inner_folder(directory.path() / "new");
  make_inner_folder(directory.path() / "new");  // there already
  EXPECT_TRUE(fs::is_directory(directory.path() / "new"));
  expect_error([&] { make_inner_folder(directory.path() / "link"); }, ErrorKind::kFailure,
               HasSubstr("is a link"), _);
  directory.add("file", "x");
  expect_error([&] { make_inner_folder(directory.path() / "file"); }, ErrorKind::kFailure,
               HasSubstr("cannot create"), _);
}

}  // namespace
}  // namespace gpuwhy
