// SPDX-License-Identifier: Apache-2.0
#include "analysis/kernels/graph_names.h"

#include "analysis/operators/operators.h"
#include "analysis/stages/attribution.h"
#include "analysis/stages/ranges.h"
#include "testing.h"
#include "trace_builder.h"

namespace gpuwhy {
namespace {

// One launch of a graph whose kernels have these names and node numbers (kUnnumberedNode, or 2 for
// the first of graph_nodes).
struct Node {
  std::string kernel;
  std::uint32_t node = kUnnumberedNode;
};

struct Replay {
  TraceBuilder made;
  std::uint32_t thread = 0;
  std::uint32_t stream = 0;
  std::vector<std::uint32_t> nodes;
  std::int64_t time_ns = 10'000;

  Replay() {
    const std::uint16_t process = made.add_process();
    thread = made.add_thread(process);
    stream = made.add_stream(process, made.add_device());
  }

  void launch(const std::vector<Node>& kernels) {
    const std::uint32_t call = made.call(thread, time_ns, time_ns + 2, "cudaGraphLaunch");
    for (const Node& one : kernels) {
      time_ns += 10;
      made.kernel(stream, time_ns, time_ns + 5, one.kernel, call, {.is_graph_node = true});
      nodes.push_back(one.node);
    }
    time_ns += 100;
  }

  // Nodes with these ids are numbered from 2.
  Trace finish(const std::vector<std::uint64_t>& ids = {}) {
    Trace trace = made.finish();
    for (const std::uint64_t id : ids) {
      GraphNode node;
      node.id = id;
      trace.graph_nodes.push_back(node);
    }
    for (std::size_t row = 0; row < nodes.size(); ++row) {
      trace.kernels.graph_node[row] = nodes[row];
    }
    return trace;
  }
};

// The scopes of each kernel, innermost first: "aten::mm < layer".
std::vector<std::string> names_of(const Trace& trace) {
  std::vector<std::string> texts;
  for (const std::uint32_t node : trace.kernels.graph_node) {
    std::string& text = texts.emplace_back();
    for (std::uint32_t scope = trace.graph_nodes[node].scope; scope != kNone;
         scope = trace.host_scopes[scope].parent) {
      text +=
          (text.empty() ? "" : " < ") + std::string(trace.strings[trace.host_scopes[scope].name]);
    }
  }
  return texts;
}

NodeCreation creation(std::uint64_t node, std::uint64_t original, std::int64_t time_ns) {
  NodeCreation made;
  made.node = node;
  made.original = original;
  made.time_ns = time_ns;
  return made;
}

TEST(GraphNames, ACopyHasTheRangesOfTheNodeThatWasCaptured) {
  Replay replay;
  replay.made.range(replay.thread, 0, 100, "forward");
  replay.made.range(replay.thread, 10, 20, "aten::mm, seq = 3");
  replay.made.range(replay.thread, 200, 300, "instantiate");
  replay.launch({{"a", 2}, {"b", 3}, {"c", 4}, {"d", 5}});
  Trace trace = replay.finish({21, 22, 23, 24});
  // 21 copies 11; 22 copies a copy; the original of 23 is unknown; 24 copies itself.
  trace.node_creations = {creation(11, 0, 15),   creation(12, 0, 50),   creation(21, 11, 250),
                          creation(31, 12, 210), creation(22, 31, 250), creation(23, 99, 250),
                          creation(24, 24, 250)};
  name_nodes_by_nvtx(trace);
  EXPECT_THAT(names_of(trace), ElementsAre("aten::mm, seq = 3 < forward", "forward", "", ""));
  EXPECT_THAT(trace.node_creations, IsEmpty());
  EXPECT_EQ(count_graph_names(trace).by_nvtx, 2);
  EXPECT_EQ(count_graph_names(trace).num_kernels, 4);
}

TEST(GraphNames, AnnotationsNameLayersAndOperators) {
  Replay replay;
  replay.launch({{"a", 2}, {"b", 3}, {"c", 4}, {"d"}});
  Trace trace = replay.finish({21, 22, 23});
  name_nodes_by_annotations({{21, "layers.4.mlp.up"}, {22, "sampling"}, {77, "elsewhere"}}, trace);
  EXPECT_THAT(names_of(trace),
              ElementsAre("layers.*.mlp.up < layers.4.mlp.up", "sampling", "", ""));
  const Attribution attribution = attribute(trace, Stages());
  const auto operators = summarise_operators(trace, Stages(), attribution, 20);
  ASSERT_TRUE(operators);
  EXPECT_EQ(operators->covered_ns, 10);
  ASSERT_EQ(operators->layers.size(), 1U);
  EXPECT_EQ(operators->layers[0].layer, "4");
}

// A capture on one thread: operators and the kernels they launched, ten nanoseconds each.
Trace captured(const std::vector<std::pair<std::string, std::string>>& launches) {
  TraceBuilder made;
  const std::uint32_t thread = made.add_thread(made.add_process());
  made.call(thread, 0, 1, "hipStreamBeginCapture");
  std::int64_t time_ns = 10;
  for (const auto& [op, kernel] : launches) {
    if (!op.empty()) {
      made.op(thread, time_ns, time_ns + 9, op);
    }
    time_ns += 10;
  }
  Trace trace = made.finish();
  time_ns = 10;
  for (const auto& [op, kernel] : launches) {
    trace.captured_launches.push_back({time_ns + 4, thread, trace.strings.intern(kernel)});
    time_ns += 10;
  }
  return trace;
}

const std::vector<std::pair<std::string, std::string>> kLayer = {
    {"mm", "gemm"},    {"silu", "act"}, {"mm", "gemm"}, {"norm", "reduce"},    {"rope", "rotary"},
    {"attn", "flash"}, {"", "bare"},    {"mm", "gemm"}, {"add", "elementwise"}};

std::vector<Node> layer_kernels() {
  std::vector<Node> kernels;
  for (const auto& [op, kernel] : kLayer) {
    kernels.push_back({kernel});
  }
  return kernels;
}

TEST(GraphNames, TheOrderOfACaptureNamesItsReplays) {
  Replay replay;
  replay.launch(layer_kernels());
  replay.launch(layer_kernels());
  replay.launch({{"gemm"}, {"act"}});
  Trace trace = replay.finish();
  const AlignedKernels aligned = name_nodes_by_order(captured(kLayer), trace);
  EXPECT_EQ(aligned.num_known, 9);
  EXPECT_EQ(aligned.num_aligned, 16);  // the bare launch is in no operator
  const std::vector<std::string> names = names_of(trace);
  for (std::size_t row = 0; row < 18; ++row) {
    EXPECT_EQ(names[row], kLayer[row % 9].first);
  }
  EXPECT_EQ(names[18], "");
  EXPECT_TRUE(has_unnamed_nodes(trace));
  // Each replay is a call of each operator.
  const auto operators = summarise_operators(trace, Stages(), attribute(trace, Stages()), 100);
  ASSERT_TRUE(operators);
  EXPECT_EQ(operators->rows[0].name, "mm");
  EXPECT_EQ(operators->rows[0].num_kernels, 6);
  EXPECT_EQ(operators->rows[0].calls, 6);
}

TEST(GraphNames, ARunWithoutGraphsNamesThemToo) {
  TraceBuilder eager;
  const std::uint16_t process = eager.add_process();
  const std::uint32_t thread = eager.add_thread(process);
  const std::uint32_t stream = eager.add_stream(process, eager.add_device());
  std::int64_t time_ns = 10;
  for (int step = 0; step < 3; ++step) {
    eager.launch(thread, time_ns, stream, time_ns, time_ns + 5, "sample");
    time_ns += 10;
    for (const auto& [op, kernel] : kLayer) {
      eager.op(thread, time_ns, time_ns + 9, op.empty() ? "bare" : op);
      eager.launch(thread, time_ns + 1, stream, time_ns + 3, time_ns + 8, kernel);
      time_ns += 10;
    }
  }
  Replay replay;
  replay.launch(layer_kernels());
  Trace trace = replay.finish();
  EXPECT_EQ(name_nodes_by_order(eager.finish(), trace).num_aligned, 9);
  EXPECT_FALSE(has_unnamed_nodes(trace));
}

TEST(GraphNames, TheMoreTrustedNameIsKept) {
  Replay replay;
  replay.made.range(replay.thread, 0, 100, "capture");
  replay.made.range(replay.thread, 10, 20, "aten::mm");
  std::vector<Node> kernels = layer_kernels();
  kernels[0].node = 2;
  kernels[1].node = 3;
  kernels[2].node = 4;
  replay.launch(kernels);
  Trace trace = replay.finish({21, 22, 23});
  trace.node_creations = {creation(21, 0, 15), creation(22, 0, 50), creation(23, 0, 60)};
  name_nodes_by_nvtx(trace);
  name_nodes_by_annotations({{21, "no"}, {22, "annotated"}}, trace);
  name_nodes_by_order(captured(kLayer), trace);
  const std::vector<std::string> names = names_of(trace);
  EXPECT_EQ(names[0], "aten::mm < capture");
  EXPECT_EQ(names[1], "annotated");
  EXPECT_EQ(names[2], "mm");  // better than the range around the whole capture
  const GraphNames counts = count_graph_names(trace);
  EXPECT_EQ(counts.by_nvtx, 1);
  EXPECT_EQ(counts.by_annotations, 1);
  EXPECT_EQ(counts.by_order, 6);
  EXPECT_EQ(counts.named(), 8);
}

TEST(GraphNames, ARangeAroundCaptureAndLaunchCountsOnce) {
  Replay replay;
  replay.made.range(replay.thread, 0, 100, "forward");
  replay.made.range(replay.thread, 10, 20, "mlp");
  replay.made.range(replay.thread, 9'000, 20'000, "forward");
  replay.launch({{"a", 2}, {"b", 3}});
  Trace trace = replay.finish({21, 22});
  trace.node_creations = {creation(21, 0, 15), creation(22, 0, 50)};
  name_nodes_by_nvtx(trace);
  const std::vector<RangeTotal> ranges = summarise_ranges(trace, attribute(trace, Stages()));
  ASSERT_EQ(ranges.size(), 2U);
  EXPECT_EQ(ranges[0].range, "forward");
  EXPECT_EQ(ranges[0].kernel_ns, 10);
  EXPECT_EQ(ranges[0].captured_ns, 0);
  EXPECT_EQ(ranges[1].range, "mlp");
  EXPECT_EQ(ranges[1].kernel_ns, 5);
  EXPECT_EQ(ranges[1].captured_ns, 5);
}

}  // namespace
}  // namespace gpuwhy
