// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"

namespace gpuwhy {

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
