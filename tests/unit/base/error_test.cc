// SPDX-License-Identifier: Apache-2.0
#include "base/error.h"

#include "testing.h"

namespace gpuwhy {
namespace {

TEST(Error, ContextIsAddedOutwards) {
  try {
    with_context("while reading a.yaml", [] {
      with_context("line 3", [] { throw Error(ErrorKind::kInput, "no value", "add one"); });
    });
    FAIL();
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "no value, line 3, while reading a.yaml");
    EXPECT_EQ(error.message(), "no value");
    EXPECT_EQ(error.hint(), "add one");
    EXPECT_EQ(error.kind(), ErrorKind::kInput);
    EXPECT_EQ(error.context().size(), 2U);
  }
}

TEST(Error, ContextReturnsWhatTheBodyReturns) {
  EXPECT_EQ(with_context("unused", [] { return 42; }), 42);
}

}  // namespace
}  // namespace gpuwhy
