// SPDX-License-Identifier: Apache-2.0
#include "analysis/stages/capture_summary.h"

#include "testing.h"
#include "trace_builder.h"

namespace gpuwhy {
namespace {

TEST(Copies, BytesThatNoNumberHoldsAreTheLargestNumber) {
  TraceBuilder made;
  const std::uint32_t stream = made.add_stream(made.add_process(), made.add_device());
  made.copy(stream, 0, 10, TraceBuilder::kNoCall, CopyKind::kDeviceToDevice, 12160);
  made.copy(stream, 10, 20, TraceBuilder::kNoCall, CopyKind::kDeviceToDevice, INT64_MAX);
  const std::vector<CopyRow> copies = summarise_copies(made.finish());
  ASSERT_EQ(copies.size(), 1U);
  EXPECT_EQ(copies[0].count, 2);
  EXPECT_EQ(copies[0].size_bytes, INT64_MAX);
  EXPECT_EQ(copies[0].total_ns, 20);
}

}  // namespace
}  // namespace gpuwhy
