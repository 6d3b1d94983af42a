// SPDX-License-Identifier: Apache-2.0
#include "base/file.h"

#include <csignal>

#include <sys/resource.h>
#include <sys/stat.h>

#include "temporary.h"
#include "testing.h"

namespace gpuwhy {
namespace {

namespace fs = std::filesystem;

std::size_t entries(const fs::path& directory) {
  return static_cast<std::size_t>(
      std::distance(fs::directory_iterator(directory), fs::directory_iterator()));
}

TEST(File, WritesAndReadsBack) {
  const TemporaryDirectory directory;
  const fs::path file = directory.path() / "a.txt";
  const std::string contents("one\0two\n", 8);
  write_file(file, contents);
  EXPECT_EQ(read_file(file), contents);
  write_file(file, "new");
  EXPECT_EQ(read_file(file), "new");
  EXPECT_EQ(entries(directory.path()), 1U);  // no temporary is left
}

TEST(File, AFailedWriteLeavesTheOldFileAndNothingElse) {
  const TemporaryDirectory directory;
  fs::create_directory(directory.path() / "taken");
  directory.add("taken/inside", "x");
  expect_error([&] { write_file(directory.path() / "taken", "text"); }, ErrorKind::kFailure,
               HasSubstr("cannot put in place"), _);
  EXPECT_EQ(entries(directory.path()), 1U);
  expect_error([&] { write_file(directory.path() / "absent/file", "text"); }, ErrorKind::kFailure,
               HasSubstr("No such file"), _);
}

// A limit on file size fails in the middle of a write, as a full disk does.
TEST(File, AWriteCutShortLeavesTheOldFile) {
  const TemporaryDirectory directory;
  const fs::path file = directory.add("a.txt", "old");
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  const rlimit small{1000, before.rlim_max};
  ::signal(SIGXFSZ, SIG_IGN);
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  expect_error([&] { write_file(file, std::string(5000, 'x')); }, ErrorKind::kFailure,
               HasSubstr("cannot write"), _);
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &before), 0);
  EXPECT_EQ(read_file(file), "old");
  EXPECT_EQ(entries(directory.path()), 1U);
}

TEST(File, SeveralFilesAreWrittenTogetherOrNotAtAll) {
  const TemporaryDirectory directory;
  write_files(directory.path(), {{"a.txt", "one"}, {"b.txt", "two"}, {"c.txt", ""}});
  EXPECT_EQ(read_file(directory.path() / "a.txt"), "one");
  EXPECT_EQ(read_file(directory.path() / "b.txt"), "two");
  EXPECT_EQ(read_file(directory.path() / "c.txt"), "");
  EXPECT_EQ(entries(directory.path()), 3U);
  expect_error(
      [&] {
        write_files(directory.path(), {{"a.txt", "new"}, {"absent/b.txt", "x"}});
      },
      ErrorKind::kFailure, HasSubstr("No such file"), _);
  EXPECT_EQ(read_file(directory.path() / "a.txt"), "one");
  EXPECT_EQ(entries(directory.path()), 3U);
}

TEST(File, UmaskDecidesWhoMayRead) {
  const TemporaryDirectory directory;
  const mode_t before = ::umask(027);
  write_file(directory.path() / "a", "x");
  ::umask(before);
  struct stat facts {};
  ASSERT_EQ(::stat((directory.path() / "a").c_str(), &facts), 0);
  EXPECT_EQ(facts.st_mode & 0777, 0640U);
}

TEST(File, ReadingSaysWhatIsWrong) {
  const TemporaryDirectory directory;
  expect_error([&] { read_file(directory.path() / "absent"); }, ErrorKind::kInput,
               HasSubstr("No such file"), _);
  expect_error([&] { read_file(directory.path()); }, ErrorKind::kInput,
               HasSubstr("not a regular file"), _);
  const fs::path file = directory.add("large", std::string(1000, 'x'));
  expect_error([&] { read_file(file, 999); }, ErrorKind::kInput, HasSubstr("larger than"), _);
  EXPECT_EQ(read_file(file, 1000).size(), 1000U);
}

TEST(File, AFifoDoesNotHangUs) {
  const TemporaryDirectory directory;
  const fs::path fifo = directory.path() / "fifo";
  ASSERT_EQ(::mkfifo(fifo.c_str(), 0600), 0);
  expect_error([&] { read_file(fifo); }, ErrorKind::kInput, HasSubstr("not a regular file"), _);
}

TEST(File, PseudoFilesHaveNoSize) {
  EXPECT_THAT(read_pseudo_file("/proc/self/status"), HasSubstr("CapEff"));
  EXPECT_THAT(read_pseudo_file("/proc/absent"), IsEmpty());
}

TEST(File, FreeBytesAreThoseOfTheNearestFolder) {
  const TemporaryDirectory folder;
  EXPECT_EQ(nearest_existing(folder.path() / "not" / "yet" / "there"), folder.path());
  EXPECT_EQ(nearest_existing("not/yet/there"), std::filesystem::current_path());
  EXPECT_GT(free_bytes("not/yet/there").value_or(0), 0U);
}

}  // namespace
}  // namespace gpuwhy
