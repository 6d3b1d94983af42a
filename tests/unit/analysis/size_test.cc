// SPDX-License-Identifier: Apache-2.0
//
// What a kernel costs in memory, since recordings hold a hundred million of them.

#include "analysis/stages/attribution.h"
#include "testing.h"
#include "trace/trace.h"

namespace gpuwhy {
namespace {

TEST(Trace, AKernelTakesAtMost56Bytes) {
  const std::size_t origins = 3 * sizeof(Origins{}.call[0]);
  EXPECT_EQ(sizeof(Origins), 3 * sizeof(Column<int>));
  EXPECT_LE(row_bytes<Kernels>() + origins, 56U);
}

}  // namespace
}  // namespace gpuwhy
