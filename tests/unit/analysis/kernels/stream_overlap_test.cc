// SPDX-License-Identifier: Apache-2.0
#include "analysis/kernels/stream_overlap.h"

#include "testing.h"
#include "trace_builder.h"

namespace gpuwhy {
namespace {

struct Span {
  std::int64_t start_us;
  std::int64_t end_us;
};

// How many kernels of one stream overlap; 0 without a diagnostic.
std::int64_t overlaps_of(std::initializer_list<Span> kernels, std::uint32_t compute_major,
                         bool is_one_graph = false) {
  TraceBuilder builder;
  const auto process = builder.add_process();
  const auto device = builder.add_device();
  const auto stream = builder.add_stream(process, device);
  for (const Span& span : kernels) {
    builder.kernel(stream, span.start_us * 1000, span.end_us * 1000, "k", 1,
                   {.is_graph_node = is_one_graph});
  }
  Trace trace = builder.finish();
  trace.devices[0].compute_major = compute_major;
  Diagnostics found;
  add_overlaps(trace, found);
  return found.empty() ? 0 : found[0].count;
}

TEST(StreamOverlap, KernelsOfOneStreamRunOneAfterTheOther) {
  EXPECT_EQ(overlaps_of({{0, 100}, {100, 200}, {200, 300}}, 8), 0);
  EXPECT_EQ(overlaps_of({{0, 100}, {50, 200}, {200, 300}}, 8), 1);
  EXPECT_EQ(overlaps_of({{0, 1000}, {100, 200}, {200, 300}}, 8), 2);
  EXPECT_EQ(overlaps_of({{0, 100}, {98, 200}, {198, 300}}, 8), 0) << "the clock";
}

// Programmatic dependent launch lets a kernel begin before the one before it ends.
TEST(StreamOverlap, FromHopperOnTwoMayOverlap) {
  EXPECT_EQ(overlaps_of({{0, 100}, {10, 200}, {110, 300}}, 9), 0);
  EXPECT_EQ(overlaps_of({{0, 100}, {10, 200}, {110, 300}}, 0), 0) << "not known";
  EXPECT_EQ(overlaps_of({{0, 1000}, {100, 200}, {200, 300}, {300, 400}}, 9), 2);
}

TEST(StreamOverlap, KernelsOfOneGraphLaunchMayRunSideBySide) {
  EXPECT_EQ(overlaps_of({{0, 100}, {10, 90}, {20, 80}, {30, 70}}, 8, true), 0);
  EXPECT_EQ(overlaps_of({{0, 100}, {10, 90}, {20, 80}, {30, 70}}, 8, false), 3);
}

TEST(StreamOverlap, TheOrderOfRowsDoesNotMatter) {
  EXPECT_EQ(overlaps_of({{200, 300}, {0, 1000}, {100, 200}}, 8), 2);
  EXPECT_EQ(overlaps_of({{200, 300}, {100, 200}, {0, 100}}, 8), 0);
}

}  // namespace
}  // namespace gpuwhy
