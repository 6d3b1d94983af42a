// SPDX-License-Identifier: Apache-2.0

#include "base/file.h"
#include "bundle/scrub_files.h"
#include "temporary.h"
#include "testing.h"

namespace gpuwhy {
namespace {

TEST(ScrubLog, WhatIsNotSearchedIsLeftOut) {
  const TemporaryDirectory folder;
  const std::filesystem::path log = folder.path() / "log.txt";
  std::string text;
  for (int i = 0; i < 40'000; ++i) {
    text += "step=17 loss=0.25 spoken-aloud-" + std::to_string(100'000 + i) + "\n";
  }
  const SecretValues values(std::vector<std::string>{"spoken-aloud-139999", "spoken-aloud-100001"});
  write_file(log, text);
  EXPECT_EQ(scrub_log(log, values, {}), 0U);
  EXPECT_THAT(read_file(log), Not(HasSubstr("spoken-aloud-139999")));
  EXPECT_THAT(read_file(log), HasSubstr("spoken-aloud-139998"));
  // Stopped after two blocks: all lines are whole, and every byte is accounted for.
  write_file(log, text);
  int asked = 0;
  const std::uint64_t num_left = scrub_log(log, values, [&] { return ++asked > 2; });
  const std::string kept = read_file(log);
  const std::size_t last = kept.rfind('\n', kept.size() - 2) + 1;
  EXPECT_EQ(kept.substr(last), "[" + std::to_string(num_left) +
                                   " more bytes were not searched for secrets, and left out]\n");
  const std::string scrubbed = "spoken-aloud-100001";
  EXPECT_EQ(last + scrubbed.size() - std::string("[scrubbed]").size() + num_left, text.size());
  EXPECT_THAT(kept, Not(HasSubstr(scrubbed)));
  EXPECT_LT(num_left, text.size());
  EXPECT_GT(num_left, text.size() / 4);
  // At once: all is left out.
  write_file(log, text);
  EXPECT_EQ(scrub_log(log, values, [] { return true; }), text.size());
  EXPECT_THAT(read_file(log), Not(HasSubstr("step")));
}

}  // namespace
}  // namespace gpuwhy
