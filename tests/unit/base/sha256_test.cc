// SPDX-License-Identifier: Apache-2.0
#include "base/sha256.h"

#include "temporary.h"
#include "testing.h"

namespace gpuwhy {
namespace {

// Vectors of FIPS 180-2, appendix B.
TEST(Sha256, PublishedVectors) {
  EXPECT_EQ(sha256_hex(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(sha256_hex("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(sha256_hex(std::string(1'000'000, 'a')),
            "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST(Sha256, FilesAreReadInBlocks) {
  const TemporaryDirectory directory;
  const std::string contents(3 * 1024 * 1024 + 17, 'a');
  EXPECT_EQ(sha256_of_file(directory.add("large", contents)), sha256_hex(contents));
  EXPECT_EQ(sha256_of_file(directory.add("empty", "")), sha256_hex(""));
}

TEST(Sha256, AFileThatIsNotThereIsAnError) {
  expect_error([] { sha256_of_file("/absent"); }, ErrorKind::kInput, testing::HasSubstr("/absent"),
               testing::_);
  expect_error([] { sha256_of_file("/"); }, ErrorKind::kInput, testing::_, testing::_);
}

}  // namespace
}  // namespace gpuwhy
