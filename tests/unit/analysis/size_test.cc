// SPDX-License-Identifier: Apache-2.0
//
// What a kernel costs in memory, since recordings hold a hundred million of them.
#include <gtest/gtest.h>

#include "analysis/attribution.h"
#include "trace/trace.h"

namespace llmprof {
namespace {

template <typename T>
std::size_t bytes_of(const Column<T>&) {
  return sizeof(T);
}

TEST(Trace, AKernelTakesAtMost56Bytes) {
  const Kernels k;
  const Origins o;
  const std::size_t trace = bytes_of(k.start_ns) + bytes_of(k.end_ns) + bytes_of(k.name) +
                            bytes_of(k.mangled_name) + bytes_of(k.correlation) + bytes_of(k.shape) +
                            bytes_of(k.stream) + bytes_of(k.process) + bytes_of(k.device) +
                            bytes_of(k.is_graph_node);
  // Grows with a column: then it is missing above.
  EXPECT_EQ(sizeof(Kernels), 10 * sizeof(Column<int>));
  EXPECT_LE(trace + bytes_of(o.call) + bytes_of(o.instance) + bytes_of(o.nested), 56U);
}

}  // namespace
}  // namespace llmprof
