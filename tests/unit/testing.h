// SPDX-License-Identifier: Apache-2.0
//
// What unit tests begin with: GoogleTest, its matchers, and errors that must be thrown.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"

namespace gpuwhy {

using testing::_;
using testing::AllOf;
using testing::AnyOf;
using testing::Contains;
using testing::ContainsRegex;
using testing::Each;
using testing::ElementsAre;
using testing::EndsWith;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Key;
using testing::Not;
using testing::Optional;
using testing::Pair;
using testing::SizeIs;
using testing::UnorderedElementsAre;

// Runs `body`, which must throw an Error of this kind whose message (with context) and hint match.
template <typename Body, typename What, typename Hint>
void expect_error(Body&& body, ErrorKind kind, const What& what, const Hint& hint) {
  try {
    body();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), kind);
    EXPECT_THAT(std::string(error.what()), what);
    EXPECT_THAT(error.hint(), hint);
    return;
  }
  ADD_FAILURE() << "no Error was thrown";
}

}  // namespace gpuwhy
