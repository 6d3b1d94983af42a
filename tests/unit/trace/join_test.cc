// SPDX-License-Identifier: Apache-2.0
//
// Joining of recordings: whose rows are whose, and what cannot be joined.
#include "trace/join.h"

#include "testing.h"
#include "trace_builder.h"

namespace gpuwhy {
namespace {

// One process with one GPU, as every rank sees itself: pid 1, cuda:0.
TracePart part_of(std::string_view kernel, std::uint32_t ordinal = 0) {
  TraceBuilder builder;
  const std::uint16_t process = builder.add_process();
  const std::uint32_t thread = builder.add_thread(process);
  const std::uint32_t stream = builder.add_stream(process, builder.add_device(ordinal));
  const std::uint32_t shape = builder.add_shape({{8, 1, 1}, {128, 1, 1}});
  builder.range(thread, 100, 200, kernel, {.domain = "LLM"});
  builder.range(thread, 150, kOpenEnd, "open");
  builder.op(thread, 110, 120, "aten::mm");
  builder.launch(thread, 110, stream, 120, 180, kernel, {.mangled = "_Z", .shape = shape});
  builder.copy(stream, 180, 190);
  builder.graph(stream, 190, 195);
  TracePart part;
  part.trace = builder.finish();
  part.file.file = std::string(kernel) + ".sqlite";
  return part;
}

std::vector<TracePart> two_parts() {
  std::vector<TracePart> parts;
  parts.push_back(part_of("first"));
  parts.push_back(part_of("second"));
  parts[1].file.shift_ns = 1000;
  return parts;
}

TEST(Join, KeepsProcessesAndGpusOfFilesApart) {
  const Trace trace = join_traces(two_parts());
  ASSERT_EQ(trace.processes.size(), 2);
  EXPECT_EQ(trace.processes[0].pid, trace.processes[1].pid);
  EXPECT_EQ(trace.processes[1].file, 1);
  ASSERT_EQ(trace.devices.size(), 2);
  EXPECT_EQ(trace.devices[1].ordinal, 1);
  EXPECT_EQ(trace.capture.files[1].devices, std::vector<std::string>{"cuda:1"});
  EXPECT_EQ(trace.threads[1].process, 1);
  EXPECT_EQ(trace.streams[1].process, 1);
  EXPECT_EQ(trace.streams[1].device, 1);
}

TEST(Join, MovesEveryRowToItsNewPlace) {
  const Trace trace = join_traces(two_parts());
  ASSERT_EQ(trace.kernels.size(), 2);
  EXPECT_EQ(trace.strings[trace.kernels.name[0]], "first");
  EXPECT_EQ(trace.strings[trace.kernels.name[1]], "second");
  EXPECT_EQ(trace.strings[trace.kernels.mangled_name[1]], "_Z");
  EXPECT_EQ(trace.shapes.size(), 1);
  EXPECT_EQ(trace.shapes[trace.kernels.shape[1]].grid[0], 8);
  EXPECT_EQ(trace.kernels.start_ns[1], 1120);
  EXPECT_EQ(trace.kernels.end_ns[1], 1180);
  EXPECT_EQ(trace.kernels.process[1], 1);
  EXPECT_EQ(trace.kernels.device[1], 1);
  EXPECT_EQ(trace.kernels.stream[1], 1);
  EXPECT_EQ(trace.copies.start_ns[1], 1180);
  EXPECT_EQ(trace.graphs.device[1], 1);
  EXPECT_EQ(trace.api_calls.thread[1], 1);
  EXPECT_EQ(trace.strings[trace.ops.name[1]], "aten::mm");
  ASSERT_EQ(trace.ranges.size(), 4);
  EXPECT_EQ(trace.strings[trace.ranges.text[2]], "second");
  EXPECT_EQ(trace.strings[trace.ranges.domain[2]], "LLM");
  EXPECT_EQ(trace.ranges.end_ns[3], kOpenEnd);
  EXPECT_EQ(trace.ranges.payload[3], kNoPayload);
}

TEST(Join, KeepsNumbersOfGpusThatDiffer) {
  std::vector<TracePart> parts;
  parts.push_back(part_of("first", 4));
  parts.push_back(part_of("second", 2));
  const Trace trace = join_traces(std::move(parts));
  EXPECT_EQ(trace.devices[0].ordinal, 4);
  EXPECT_EQ(trace.devices[1].ordinal, 2);
}

TEST(Join, SaysWhatFilesHaveInCommon) {
  std::vector<TracePart> parts = two_parts();
  parts[0].trace.capture.world_size = parts[1].trace.capture.world_size = 2;
  parts[0].trace.capture.rank = 0;
  parts[1].trace.capture.tool_version = "2025";
  parts[0].trace.diagnostics = {{"cut_off", Severity::kDataLoss, 1, "cut off"}};
  parts[1].trace.diagnostics = {{"cut_off", Severity::kDataLoss, 2, "cut off"}};
  const Trace trace = join_traces(std::move(parts));
  EXPECT_EQ(trace.capture.world_size, 2);
  EXPECT_FALSE(trace.capture.rank.has_value());
  EXPECT_EQ(trace.capture.tool_version, "");
  ASSERT_EQ(trace.diagnostics.size(), 1);
  EXPECT_EQ(trace.diagnostics[0].count, 3);
  EXPECT_EQ(trace.diagnostics[0].sentence,
            "first.sqlite: cut off; 1 more of this kind in other files");
}

TEST(Join, RefusesWhatDoesNotFit) {
  std::vector<TracePart> parts = two_parts();
  parts[1].file.shift_ns = INT64_MAX - 100;
  expect_error([&] { join_traces(std::move(parts)); }, ErrorKind::kInput,
               testing::HasSubstr("times in second.sqlite"), testing::_);
  parts = two_parts();
  parts[0].trace.processes.resize(UINT16_MAX);
  expect_error([&] { join_traces(std::move(parts)); }, ErrorKind::kInput,
               testing::HasSubstr("too many processes"), testing::_);
  parts = two_parts();
  parts[0].trace.kernels.end_ns[0] = parts[1].trace.kernels.end_ns[0] = 3'000'000'000'000'000'000;
  expect_error([&] { join_traces(std::move(parts)); }, ErrorKind::kInput,
               testing::HasSubstr("longer than a century"), testing::_);
}

}  // namespace
}  // namespace gpuwhy
