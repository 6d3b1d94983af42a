// SPDX-License-Identifier: Apache-2.0
#include "session/record/run_options.h"

#include "config/compose.h"
#include "testing.h"

namespace gpuwhy {
namespace {

using testing::_;

TEST(RunOptions, AreCheckedAgainstTheirMeaning) {
  const auto options = [](const std::string& given) {
    return common_options_of(compose(std::nullopt, {given}));
  };
  EXPECT_EQ(options("run.mode=light").top_n_kernels, 20);
  expect_error([&] { options("run.mode=fast"); }, ErrorKind::kUsage,
               "run.mode takes deep or light, not \"fast\"", "set by override run.mode=fast");
  expect_error([&] { options("run.top_n_kernels=0"); }, ErrorKind::kUsage, HasSubstr("at least 1"),
               _);
  expect_error([&] { options("~run"); }, ErrorKind::kUsage, HasSubstr("run.mode is needed"), _);
}

}  // namespace
}  // namespace gpuwhy
