// SPDX-License-Identifier: Apache-2.0

#include "base/error.h"
#include "base/file.h"
#include "base/gzip_base64.h"
#include "temporary.h"
#include "testing.h"

namespace gpuwhy {
namespace {

std::size_t num_files(const std::filesystem::path& directory) {
  return static_cast<std::size_t>(std::distance(std::filesystem::directory_iterator(directory),
                                                std::filesystem::directory_iterator()));
}

TEST(FileWriter, IsThereAfterCommitAlone) {
  const TemporaryDirectory directory;
  {
    FileWriter file(directory.path() / "kept");
    file.write("a");
    EXPECT_FALSE(std::filesystem::exists(directory.path() / "kept"));
    file.write(std::string(3 * kMiB, 'b'));
    file.commit();
  }
  EXPECT_EQ(read_file(directory.path() / "kept"), "a" + std::string(3 * kMiB, 'b'));
  {
    FileWriter file(directory.path() / "dropped");
    file.write("a");
  }
  EXPECT_EQ(num_files(directory.path()), 1U);
}

TEST(FileWriter, CountsBehindTheLimitAndForgets) {
  const TemporaryDirectory directory;
  FileWriter file(directory.path() / "out");
  file.write("head");
  file.set_limit(8);
  file.write("12345");
  file.write("6");
  EXPECT_EQ(file.size_bytes(), 10U);
  file.cut_back(4);
  EXPECT_EQ(file.size_bytes(), 4U);
  file.write("tail");
  file.commit();
  EXPECT_EQ(read_file(directory.path() / "out"), "headtail");
}

TEST(FileWriter, SaysWhatItCannotWrite) {
  EXPECT_THROW(FileWriter("/nowhere/at/all"), Error);
}

TEST(Gzip, StartsLikeAFileOfGzipAndIsSmaller) {
  const std::string packed = gzipped(std::string(200'000, 'x'));
  EXPECT_EQ(packed.substr(0, 3), "\x1f\x8b\x08");
  EXPECT_LT(packed.size(), 1000U);
  EXPECT_EQ(packed, gzipped(std::string(200'000, 'x')));
}

}  // namespace
}  // namespace gpuwhy
