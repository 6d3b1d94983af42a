// SPDX-License-Identifier: Apache-2.0
//
// Traces made by hand, of all eras of PyTorch's profiler and of nobody's.
#include <chrono>
#include <string>

#include <zlib.h>

#include "ingest/ingest.h"
#include "ingest/kineto/kineto_numbers.h"
#include "temporary.h"
#include "testing.h"
#include "trace/device_label.h"
#include "trace/op_inputs.h"

namespace gpuwhy {
namespace {

using testing::Field;

std::string gzipped(const std::string& text) {
  z_stream stream{};
  deflateInit2(&stream, 9, Z_DEFLATED, 15 + 16, 9, Z_DEFAULT_STRATEGY);
  std::string out(deflateBound(&stream, text.size()) + 64, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  deflate(&stream, Z_FINISH);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

Trace load_text(const std::string& text, const std::string& name = "trace.json") {
  const TemporaryDirectory directory;
  return load_trace(directory.add(name, text), 1);
}

std::string document(const std::string& events) {
  return R"({"schemaVersion": 1, "traceEvents": [)" + events + R"(], "traceName": "t.json"})";
}

std::string kernel(const std::string& name, int ts, const std::string& more = "") {
  return R"({"ph": "X", "cat": "kernel", "name": ")" + name + R"(", "pid": 0, "tid": 7, "ts": )" +
         std::to_string(ts) +
         R"(, "dur": 2.5, "args": {"device": 0, "stream": 7, "correlation": )" +
         std::to_string(ts) + more + "}}";
}

std::vector<std::string> kinds_of(const Trace& trace) {
  std::vector<std::string> kinds;
  for (const Diagnostic& diagnostic : trace.diagnostics) {
    kinds.push_back(diagnostic.kind);
  }
  return kinds;
}

TEST(KinetoTimes, AreExact) {
  EXPECT_EQ(ns_of_microseconds("1365627862757.064"), 1365627862757064);
  EXPECT_EQ(ns_of_microseconds("1683564901548726.001"), 1683564901548726001);  // no double has this
  EXPECT_EQ(ns_of_microseconds("5"), 5000);
  EXPECT_EQ(ns_of_microseconds("0.04"), 40);
  EXPECT_EQ(ns_of_microseconds("0.0004"), 0);
  EXPECT_EQ(ns_of_microseconds("0.0005"), 1);
  EXPECT_EQ(ns_of_microseconds("1.99951234"), 2000);
  EXPECT_EQ(ns_of_microseconds("-1.5 "), -1500);
  EXPECT_EQ(ns_of_microseconds("1.5e3"), 1500000);
  EXPECT_EQ(ns_of_microseconds("\"12.5\""), 12500);
  for (const char* bad : {"", "-", ".5", "1.5x", "nan", "1e999", "99999999999999999999", "{",
                          "4000000000000001", "null", "\"\"", "1e", "0x10"}) {
    EXPECT_EQ(ns_of_microseconds(bad), std::nullopt) << bad;
  }
}

// Lists of more than thirty ranks are cut in the kernels; the trace as a whole has them.
TEST(KinetoJson, KernelsTellTheirProcessGroup) {
  const Trace trace = load_text(R"j({
  "schemaVersion": 1,
  "distributedInfo": {"rank": 3, "world_size": 8, "pg_config": [
    {"pg_name": "1", "pg_desc": "tp", "ranks": [9, 9]}, {"pg_name": "2", "ranks": [4, 0, 2]}]},
  "traceEvents": [
    {"ph": "X", "cat": "kernel", "name": "ncclA", "pid": 0, "tid": 7, "ts": 1, "dur": 4,
     "args": {"device": 0, "stream": 7, "correlation": 78, "Collective name": "allreduce",
     "Process Group Name": "1", "Process Group Description": "mesh_tp", "Group size": 2,
     "Process Group Ranks": "[3, 2]"}},
    {"ph": "X", "cat": "kernel", "name": "ncclB", "pid": 0, "tid": 7, "ts": 9, "dur": 4,
     "args": {"device": 0, "stream": 7, "correlation": 77, "Collective name": "_allgather_base",
     "Process Group Name": "2", "Group size": 3, "Process Group Ranks": "[0, 2, ...]"}},
    {"ph": "X", "cat": "kernel", "name": "gemm", "pid": 0, "tid": 7, "ts": 19, "dur": 4,
     "args": {"device": 0, "stream": 7, "correlation": 79}}
  ]})j");
  ASSERT_EQ(trace.process_groups.size(), 2U);
  EXPECT_EQ(trace.process_groups[0], (ProcessGroup{"1", "mesh_tp", {2, 3}, 2}));
  EXPECT_EQ(trace.process_groups[1], (ProcessGroup{"2", "", {0, 2, 4}, 3}));
  ASSERT_EQ(trace.collective_kernels.size(), 2U);
  EXPECT_EQ(trace.collective_kernels[0].correlation, 77U);
  EXPECT_EQ(trace.collective_kernels[0].group, 1U);
  EXPECT_EQ(trace.strings[trace.collective_kernels[1].collective], "allreduce");
}

TEST(KinetoJson, ReadsWhatTheProfilerWritesToday) {
  const Trace trace = load_text(R"j({
  "schemaVersion": 1,
  "deviceProperties": [{"id": 0, "name": "NVIDIA X", "totalGlobalMem": 1024, "numSms": 8}],
  "cupti_version": 28,
  "distributedInfo": {"backend": "nccl", "rank": 3, "world_size": 8},
  "traceEvents": [
    {"ph": "X", "cat": "user_annotation", "name": "execute_context_1(8)_generation_0(0)",
     "pid": 9, "tid": 11, "ts": 100.000, "dur": 50.001, "args": {"External id": 1}},
    {"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 9, "tid": 11, "ts": 101, "dur": 9},
    {"ph": "X", "cat": "python_function", "name": "nn.Module: XDecoderLayer_0", "pid": 9, "tid": 11,
     "ts": 100.5, "dur": 20},
    {"ph": "X", "cat": "python_function", "name": "x.py(3): f", "pid": 9, "tid": 11, "ts": 1, "dur": 2},
    {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 9, "tid": 11, "ts": 102,
     "dur": 3, "args": {"External id": 2, "cbid": 211, "correlation": 77}},
    {"ph": "s", "id": 77, "pid": 9, "tid": 11, "ts": 102, "cat": "ac2g", "name": "ac2g"},
    {"ph": "X", "cat": "kernel", "name": "gemm<\"4\", int>", "pid": 0, "tid": 7, "ts": 110.25,
     "dur": 4.125, "args": {"External id": 2, "device": 0, "context": 1, "stream": 7,
     "correlation": 77, "grid": [8, 4, 1], "block": [128, 1, 1]}},
    {"ph": "X", "cat": "gpu_memcpy", "name": "Memcpy HtoD (Pinned -> Device)", "pid": 0, "tid": 7,
     "ts": 120, "dur": 1, "args": {"device": 0, "stream": 7, "correlation": 78, "bytes": 4096}},
    {"ph": "X", "cat": "gpu_memset", "name": "Memset (Device)", "pid": 0, "tid": 9, "ts": 121,
     "dur": 1, "args": {"device": 0, "stream": 9, "correlation": 79, "bytes": 16}},
    {"ph": "X", "cat": "Trace", "ts": 1, "dur": 2, "pid": "Spans", "tid": "PyTorch Profiler",
     "name": "PyTorch Profiler"},
    {"name": "process_name", "ph": "M", "ts": 0, "pid": 9, "tid": 0, "args": {"name": "python"}}
  ],
  "traceName": "a.json", "baseTimeNanoseconds": 1719853884000000000
})j");
  EXPECT_EQ(trace.capture.format.name, "PyTorch profiler JSON");
  EXPECT_EQ(trace.capture.tool_version, "CUPTI 28");
  EXPECT_EQ(trace.capture.rank, 3);
  EXPECT_EQ(trace.capture.world_size, 8);
  EXPECT_EQ(trace.capture.utc_ns, 1719853884000000000);
  ASSERT_EQ(trace.kernels.size(), 1U);
  EXPECT_EQ(trace.strings[trace.kernels.name[0]], "gemm<\"4\", int>");
  EXPECT_EQ(trace.kernels.start_ns[0], 110250);
  EXPECT_EQ(trace.kernels.end_ns[0], 114375);
  EXPECT_EQ(trace.kernels.correlation[0], 77U);
  EXPECT_FALSE(trace.kernels.is_graph_node(0));
  EXPECT_EQ(trace.shapes[trace.kernels.shape[0]].text(), "8x4x1/128x1x1");
  ASSERT_EQ(trace.copies.size(), 2U);
  EXPECT_EQ(trace.copies.kind[0], CopyKind::kHostToDevice);
  EXPECT_EQ(trace.copies.size_bytes[0], 4096);
  EXPECT_EQ(trace.copies.kind[1], CopyKind::kMemset);
  EXPECT_NE(trace.copies.stream[0], trace.copies.stream[1]);
  ASSERT_EQ(trace.api_calls.size(), 1U);
  EXPECT_EQ(trace.strings[trace.api_calls.name[0]], "cudaLaunchKernel");
  EXPECT_EQ(trace.api_calls.correlation[0], 77U);
  ASSERT_EQ(trace.ranges.size(), 1U);
  EXPECT_EQ(trace.ranges.end_ns[0], 150001);
  ASSERT_EQ(trace.ops.size(), 2U);
  EXPECT_EQ(trace.ops.kind[0], OpKind::kOperator);
  EXPECT_EQ(trace.ops.kind[1], OpKind::kModule);
  ASSERT_EQ(trace.threads.size(), 1U);
  EXPECT_EQ(trace.threads[0].tid, 11U);
  ASSERT_EQ(trace.devices.size(), 1U);
  EXPECT_EQ(trace.devices[0].name, "NVIDIA X");
  EXPECT_EQ(trace.devices[0].num_sms, 8U);
  EXPECT_EQ(trace.processes[trace.kernels.process[0]].pid, 9U);
  EXPECT_TRUE(trace.diagnostics.empty());
}

TEST(KinetoJson, KeepsLongPythonFunctions) {
  const auto function = [](const std::string& name, const std::string& dur) {
    return R"({"ph": "X", "cat": "python_function", "name": ")" + name +
           R"(", "pid": 1, "tid": 1, "ts": 5, "dur": )" + dur + R"(, "args": {"Python id": 1}},)";
  };
  const Trace trace = load_text(
      document(function("a.py(1): short", "249.999") + function("a.py(2): long", "250.000") +
               function("nn.Module: Linear_0", "1.0") +
               R"({"dur": 900, "name": "a.py(3): other order", "cat": "python_function", "ph": "X",
          "pid": 1, "tid": 1, "ts": 6},)" +
               R"({"dur": 9, "name": "a.py(4): short", "cat": "python_function", "ph": "X",
          "pid": 1, "tid": 1, "ts": 6},)" +
               kernel("gemm", 1)));
  ASSERT_EQ(trace.functions.size(), 2U);
  EXPECT_EQ(trace.strings[trace.functions.name[0]], "a.py(2): long");
  EXPECT_EQ(trace.functions.end_ns[0] - trace.functions.start_ns[0], 250'000);
  EXPECT_EQ(trace.strings[trace.functions.name[1]], "a.py(3): other order");
  ASSERT_EQ(trace.ops.size(), 1U);
  EXPECT_EQ(trace.ops.kind[0], OpKind::kModule);
  EXPECT_THAT(trace.diagnostics, testing::IsEmpty());
}

TEST(KinetoJson, KnowsUtcAsFarAsTheFileDoes) {
  const auto utc_of = [](const std::string& ts, const std::string& member) {
    return load_text(
               R"({"schemaVersion": 1, "traceEvents": [{"ph": "X", "cat": "kernel", "name": "k",
      "pid": 0, "tid": 7, "dur": 2, "args": {"device": 0}, "ts": )" +
               ts + "}]" + member + "}")
        .capture.utc_ns;
  };
  EXPECT_EQ(utc_of("4909733317121.5", R"(, "baseTimeNanoseconds": 1775078550000000000)"),
            1775078550000000000);
  EXPECT_EQ(utc_of("1682725898082228", ""), 0);      // microseconds since 1970
  EXPECT_EQ(utc_of("12345.678", ""), std::nullopt);  // since the start of something
  EXPECT_EQ(utc_of("1", R"(, "baseTimeNanoseconds": 17)"), std::nullopt);
  EXPECT_EQ(utc_of("1", R"(, "baseTimeNanoseconds": 99999999999999999999)"), std::nullopt);
}

// The span of the profiler itself says when recording began: an idle server has no other event.
TEST(KinetoJson, KnowsWhenRecordingBegan) {
  const Trace trace = load_text(
      R"({"schemaVersion": 1, "traceEvents": [
      {"ph": "X", "cat": "Trace", "ts": 100, "dur": 900, "pid": "Spans", "tid": "PyTorch Profiler",
       "name": "PyTorch Profiler", "args": {
  "Op count" : 0}},
      {"ph": "X", "cat": "kernel", "name": "k", "pid": 0, "tid": 7, "ts": 500, "dur": 2,
       "args": {"device": 0}}]
})");
  EXPECT_EQ(trace.capture.session_start_ns, 100'000);
  EXPECT_EQ(trace.kernels.size(), 1U);
  EXPECT_TRUE(trace.diagnostics.empty());
}

TEST(KinetoJson, ReadsTheSpellingOf2021) {
  const Trace trace = load_text(document(R"j(
    {"ph": "X", "cat": "Operator", "name": "ProfilerStep#6", "pid": 5, "tid": "5", "ts": 9, "dur": 12},
    {"ph": "X", "cat": "Operator", "name": "aten::add", "pid": 5, "tid": "5", "ts": 10, "dur": 9},
    {"ph": "X", "cat": "Runtime", "name": "cudaLaunchKernel", "pid": 5, "tid": "5", "ts": 11, "dur": 1,
     "args": {"cbid": 211, "correlation": 3, "external id": 2}},
    {"ph": "X", "cat": "Kernel", "name": "k", "pid": 1, "tid": "stream 7", "ts": 15, "dur": 2,
     "args": {"correlation": 3}},
    {"ph": "X", "cat": "Memcpy", "name": "Memcpy DtoH (Device -> Pageable)", "pid": 1,
     "tid": "stream 20", "ts": 18, "dur": 2, "args": {"correlation": 4, "bytes": 8}},
    {"ph": "X", "cat": "Memset", "name": "Memset (Device)", "pid": 1, "tid": "stream 7", "ts": 19,
     "dur": 0, "args": {"correlation": 5}})j"));
  EXPECT_EQ(trace.ops.size(), 1U);
  ASSERT_EQ(trace.ranges.size(), 1U);  // a step, as since 2022
  EXPECT_EQ(trace.strings[trace.ranges.text[0]], "ProfilerStep#6");
  ASSERT_EQ(trace.kernels.size(), 1U);
  EXPECT_EQ(trace.devices[trace.kernels.device[0]].ordinal, 1U);
  EXPECT_EQ(trace.streams[trace.kernels.stream[0]].stream, 7U);
  ASSERT_EQ(trace.copies.size(), 2U);
  EXPECT_EQ(trace.copies.kind[0], CopyKind::kDeviceToPageable);
  EXPECT_EQ(trace.streams[trace.copies.stream[0]].stream, 20U);
  EXPECT_EQ(trace.threads[0].tid, 5U);
}

TEST(KinetoJson, ReadsTheListBeforeKineto) {
  const Trace trace = load_text(
      R"([{"name": "add", "ph": "X", "ts": 10.5, "dur": 9.0, "tid": 2, "pid": "CPU functions", "args": {}},
{"name": "add", "ph": "s", "ts": 10.5, "tid": 2, "pid": "CPU functions", "id": 0, "cat": "cpu_to_cuda", "args": {}},
{"name": "k", "ph": "f", "ts": 30.0, "tid": 1, "pid": "CUDA functions", "id": 0, "cat": "cpu_to_cuda", "args": {}},
{"name": "k", "ph": "X", "ts": 30.0, "dur": 4.0, "tid": 1, "pid": "CUDA functions", "args": {}}, ])");
  EXPECT_EQ(trace.ops.size(), 1U);
  ASSERT_EQ(trace.kernels.size(), 1U);
  ASSERT_EQ(trace.api_calls.size(), 1U);
  EXPECT_EQ(trace.kernels.correlation[0], trace.api_calls.correlation[0]);
  EXPECT_EQ(trace.api_calls.start_ns[0], 10500);
  EXPECT_EQ(trace.devices[0].ordinal, 1U);
  EXPECT_TRUE(trace.diagnostics.empty());
}

TEST(KinetoJson, KernelsOfAGraphLaunchAreItsNodes) {
  const Trace trace = load_text(document(R"(
    {"ph": "X", "cat": "cuda_runtime", "name": "cudaGraphLaunch", "pid": 5, "tid": 5, "ts": 1, "dur": 1,
     "args": {"correlation": 3}},)" + kernel("a", 3) +
                                         "," + kernel("b", 4) + "," +
                                         kernel("c", 5, R"(, "graph node id": 8)")));
  ASSERT_EQ(trace.kernels.size(), 3U);
  EXPECT_THAT(
      std::vector<std::uint32_t>(trace.kernels.graph_node.begin(), trace.kernels.graph_node.end()),
      ElementsAre(kUnnumberedNode, kNoNode, 2));
  EXPECT_EQ(trace.graph_nodes[2].id, 8U);
}

TEST(KinetoJson, FieldsComeInAnyOrder) {
  const Trace trace = load_text(R"({"traceEvents": [
    {"args": {"correlation": 5, "grid": [3, 1, 1], "device": 2}, "dur": 2, "ts": 1, "tid": 7, "pid": 0,
     "name": "k\u00e9", "cat": "kernel", "ph": "X"}], "distributedInfo": {"rank": 1}})");
  ASSERT_EQ(trace.kernels.size(), 1U);
  EXPECT_EQ(trace.kernels.correlation[0], 5U);
  EXPECT_EQ(trace.shapes[trace.kernels.shape[0]].grid[0], 3);
  EXPECT_EQ(trace.devices[0].ordinal, 2U);
  EXPECT_EQ(trace.strings[trace.kernels.name[0]], "k\xc3\xa9");
  EXPECT_EQ(trace.capture.rank, 1);
}

TEST(KinetoJson, DevicesOfAnotherOrderHaveTheNameAllShare) {
  const std::string of_two =
      R"({"deviceProperties": [{"id": 0, "name": "A"}, {"id": 1, "name": "%"}],
    "traceEvents": [{"ph": "X", "cat": "kernel", "name": "k", "pid": 9, "tid": 0, "ts": 1, "dur": 1}]})";
  const auto named = [&](const char* name) {
    return load_text(std::string(of_two).replace(of_two.find('%'), 1, name)).devices[0].name;
  };
  EXPECT_EQ(named("A"), "A");
  EXPECT_EQ(named("B"), "");
}

// A GPU without a name has the label of the runtime that the recording proves, or none.
TEST(KinetoJson, TheRuntimeOfAGpuWithoutANameIsProvedOrUnknown) {
  const auto label = [](const std::string& events) {
    return device_label(load_text(document(events)).devices[0]);
  };
  const auto call = [](const std::string& name) {
    return R"(, {"ph": "X", "cat": "cuda_runtime", "name": ")" + name +
           R"(", "pid": 9, "tid": 9, "ts": 0, "dur": 1, "args": {"correlation": 1}})";
  };
  EXPECT_EQ(label(kernel("elementwise", 1)), "GPU 0");
  EXPECT_EQ(label(kernel("elementwise", 1) + call("cudaLaunchKernel")), "cuda:0");
  EXPECT_EQ(label(kernel("elementwise", 1) + call("hipLaunchKernel")), "hip:0");
  for (const char* name : {"Cijk_Ailk_Bljk_HHS", "ck_tile::kentry", "aiter::fmoe", "gemm_gfx942"}) {
    EXPECT_EQ(label(kernel(name, 1)), "hip:0") << name;
  }
}

// Many windows, and every trap for a reader that looks for the end of an event in the text.
TEST(KinetoJson, WindowsCutNothing) {
  std::string events;
  constexpr int kEvents = 20'000;
  for (int i = 0; i < kEvents; ++i) {
    std::string name = R"(f<{lambda#1}, {lambda#2}>(\"},{\", \\)" + std::to_string(i % 7);
    std::string more = R"(, "list": [{"a": 1}, {"b": [{"c": "}] , {"}]}], "text": ")" +
                       std::string(static_cast<std::size_t>(i % 300), i % 2 == 0 ? '}' : '{') + '"';
    events += (i == 0 ? "" : i % 3 == 0 ? " ,\n " : ",") + kernel(name, i, more);
  }
  const std::string text = document(events);
  ASSERT_GT(text.size(), 5U << 20);
  for (const Trace& trace : {load_text(text), load_text(gzipped(text), "trace.json.gz"),
                             load_text("[" + events + "]")}) {
    ASSERT_EQ(trace.kernels.size(), static_cast<std::size_t>(kEvents));
    for (int i = 0; i < kEvents; ++i) {
      const auto row = static_cast<std::size_t>(i);
      ASSERT_EQ(trace.kernels.start_ns[row], i * 1000);
      ASSERT_EQ(trace.strings[trace.kernels.name[row]],
                R"(f<{lambda#1}, {lambda#2}>("},{", \)" + std::to_string(i % 7));
    }
    EXPECT_TRUE(trace.diagnostics.empty());
  }
}

TEST(KinetoJson, AnEventMayBeLargerThanAWindow) {
  std::string large = R"(, "stack": ")" + std::string(3 << 20, '}') + "\"";
  const Trace trace =
      load_text(document(kernel("a", 1) + "," + kernel("b", 2, large) + "," + kernel("c", 3)));
  EXPECT_EQ(trace.kernels.size(), 3U);
  EXPECT_TRUE(trace.diagnostics.empty());
}

TEST(KinetoJson, NestingIsOnlyANumber) {
  const std::string deep = R"(, "deep": )" + std::string(500'000, '[') + std::string(500'000, ']');
  EXPECT_EQ(load_text(document(kernel("a", 1, deep) + "," + kernel("b", 2))).kernels.size(), 2U);
  const std::string unclosed =
      document(kernel("a", 1) + "," + kernel("b", 2, ", \"x\": " + std::string(500'000, '[')));
  EXPECT_EQ(load_text(unclosed).kernels.size(), 1U);
  const std::string member =
      R"({"metadata": )" + std::string(300'000, '{') + R"(, "traceEvents": []})";
  expect_error([&] { load_text(member); }, ErrorKind::kInput, HasSubstr("no traceEvents"), _);
}

TEST(KinetoJson, ACutOffFileGivesWhatItHolds) {
  const std::string text = document(kernel("a", 1) + "," + kernel("b", 2) + "," + kernel("c", 3));
  const std::size_t third = text.find(R"("name": "c")");
  for (const std::size_t length : {third, third + 40, text.rfind("]"), text.rfind("}") - 10}) {
    const Trace trace = load_text(text.substr(0, length));
    EXPECT_EQ(trace.kernels.size(), length > third + 100 ? 3U : 2U) << length;
    EXPECT_THAT(trace.diagnostics, Contains(Field(&Diagnostic::severity, Severity::kDataLoss)));
  }
  std::string events = kernel("a", 0);
  for (int i = 1; i < 5000; ++i) {
    events += "," + kernel("k" + std::to_string(i * i), i);
  }
  const std::string packed = gzipped(document(events));
  const Trace trace = load_text(packed.substr(0, packed.size() / 2), "trace.json.gz");
  EXPECT_THAT(kinds_of(trace), ElementsAre("cut_off"));
  EXPECT_GT(trace.kernels.size(), 1000U);
  EXPECT_LT(trace.kernels.size(), 4900U);
}

TEST(KinetoJson, DamageInTheMiddleEndsTheReading) {
  const Trace trace = load_text(
      document(kernel("a", 1) + "," + R"({"ph": "X" "cat" "kernel"})" + "," + kernel("c", 3)));
  EXPECT_EQ(trace.kernels.size(), 1U);
  EXPECT_THAT(kinds_of(trace), ElementsAre("cut_off"));
}

TEST(KinetoJson, WrongTypesAndMissingFieldsAreCounted) {
  const Trace trace = load_text(document(kernel("good", 1) +
                                         R"(, 17, null, "x", [], {},
      {"ph": "X", "cat": "kernel", "name": "no time", "pid": 0, "tid": 7, "dur": 1},
      {"ph": "X", "cat": "kernel", "name": "no length", "pid": 0, "tid": 7, "ts": 1},
      {"ph": "X", "cat": "kernel", "name": "negative", "pid": 0, "tid": 7, "ts": 1, "dur": -3},
      {"ph": "X", "cat": "kernel", "name": "huge", "pid": 0, "tid": 7, "ts": 1e300, "dur": 3},
      {"ph": "X", "cat": "cpu_op", "name": {"a": [1]}, "pid": 0, "tid": [7], "ts": 1, "dur": 3},
      {"ph": 3, "cat": [], "name": 5}, {"ph": "X", "cat": "cpu_op", "args": 5},
      {"ph": "X", "cat": "kernel", "name": 5, "pid": 0, "tid": 7, "ts": 1, "dur": 3,
       "args": {"grid": {"x": 1}, "correlation": "many", "device": null, "block": [1, 2, 3, 4, "5"]}})"));
  ASSERT_EQ(trace.kernels.size(), 2U);
  EXPECT_EQ(trace.kernels.correlation[1], kNone);
  EXPECT_EQ(trace.shapes[trace.kernels.shape[1]].text(), "0x0x0/1x2x3");
  ASSERT_THAT(kinds_of(trace), ElementsAre("unusable_event", "ends_before_start"));
  EXPECT_EQ(trace.diagnostics[0].count, 5);
  EXPECT_EQ(trace.diagnostics[1].sentence, "left out 1 of 6 kernels: their duration is below 0");
  EXPECT_EQ(trace.diagnostics[1].severity, Severity::kImpossible);
}

TEST(KinetoJson, TimesThatCannotBeTrueAreLeftOut) {
  const Trace trace = load_text(document(
      kernel("good", 1000) +
      R"(, {"ph": "X", "cat": "kernel", "name": "k", "pid": 0, "tid": 7, "ts": 3999999999999999, "dur": 1},
      {"ph": "X", "cat": "kernel", "name": "k", "pid": 0, "tid": 7, "ts": 1, "dur": 3999999999999999})"));
  EXPECT_EQ(trace.kernels.size(), 1U);
  EXPECT_THAT(kinds_of(trace), ElementsAre("implausible_event"));
  // And their sum stays within bounds, however many there are.
  std::string events = kernel("good", 1);
  for (int i = 0; i < 500; ++i) {
    events += R"(,{"ph":"X","cat":"kernel","name":"k","pid":0,"tid":7,"ts":1,"dur":2500000000000})";
  }
  const Trace long_ones = load_text(document(events));
  std::int64_t sum_ns = 0;
  for (std::size_t row = 0; row < long_ones.kernels.size(); ++row) {
    ASSERT_FALSE(__builtin_add_overflow(
        sum_ns, long_ones.kernels.end_ns[row] - long_ones.kernels.start_ns[row], &sum_ns));
  }
  EXPECT_LT(sum_ns, INT64_MAX / 20);
}

TEST(KinetoJson, BytesThatJsonForbidsAreReplaced) {
  const Trace trace = load_text(document(kernel("a\tb\x01", 1) + "," + kernel("c\xff", 2)));
  ASSERT_EQ(trace.kernels.size(), 2U);
  EXPECT_EQ(trace.strings[trace.kernels.name[0]], "a b ");
  EXPECT_EQ(trace.strings[trace.kernels.name[1]], "c?");
  EXPECT_THAT(kinds_of(trace), ElementsAre("repaired_text"));
}

TEST(KinetoJson, WhatIsNoTraceIsRefused) {
  expect_error([] { load_text(R"({"a": 1})"); }, ErrorKind::kInput, HasSubstr("no traceEvents"), _);
  expect_error([] { load_text(R"({"traceEvents": {}})"); }, ErrorKind::kInput,
               HasSubstr("no traceEvents"), _);
  expect_error([] { load_text(R"([1, 2, {"ph": "X", "cat": "mine", "ts": 1, "dur": 1}])"); },
               ErrorKind::kInput, HasSubstr("none of the 3 trace events"), _);
  expect_error([] { load_text("[[[[[["); }, ErrorKind::kInput, HasSubstr("cut off or damaged"), _);
  expect_error([] { load_text("hello"); }, ErrorKind::kInput, HasSubstr("not a recording"), _);
}

TEST(KinetoJson, GzipBombsAreRefused) {
  std::string events;
  while (events.size() < 32 << 20) {
    events += R"({"ph": "i"},)";
  }
  for (const std::string& filler : {events, std::string(32 << 20, ' ')}) {
    const std::string piece = gzipped(filler);
    std::string packed = gzipped(filler[0] == ' ' ? "{" : "{\"traceEvents\": [");
    for (int i = 0; i < 12; ++i) {
      packed += piece;
    }
    ASSERT_LT(packed.size(), 1U << 20);
    expect_error([&] { load_text(packed, "trace.json.gz"); }, ErrorKind::kInput,
                 HasSubstr("expands to more than 200 times"), HasSubstr("gunzip"));
  }
}

TEST(KinetoJson, MembersOfAGzipFileAreOneText) {
  const std::string text = document(kernel("a", 1) + "," + kernel("b", 2));
  const Trace trace =
      load_text(gzipped(text.substr(0, 50)) + gzipped(text.substr(50)) + std::string(20, '\0'),
                "trace.json.gz");
  EXPECT_EQ(trace.kernels.size(), 2U);
  EXPECT_TRUE(trace.diagnostics.empty());
}

std::string op_event(const std::string& name, const std::string& args) {
  return R"({"ph": "X", "cat": "cpu_op", "name": ")" + name +
         R"(", "pid": 1, "tid": 1, "ts": 5, "dur": 2, "args": {)" + args + "}}";
}

TEST(KinetoJson, InputsOfProductsAndCollectives) {
  const std::string sizes = R"("Input Dims": [[2, 3], [3, 4]], "Input type": ["float", "float"])";
  const Trace trace = load_text(
      document(op_event("aten::mm", sizes) + "," + op_event("aten::mm", sizes) + "," +
               op_event("aten::relu", sizes) + "," + op_event("aten::bmm", "") + "," +
               op_event("record_param_comms",
                        R"("Collective name": "allreduce", "In msg nelems": 7, "Group size": 2)") +
               "," + kernel("k", 6)));
  ASSERT_EQ(trace.ops.size(), 5U);
  EXPECT_EQ(trace.ops.inputs[0], trace.ops.inputs[1]);
  EXPECT_EQ(trace.ops.inputs[2], StringId{});
  EXPECT_EQ(trace.ops.inputs[3], StringId{});
  const auto product = product_of_inputs(trace.strings[trace.ops.inputs[0]]);
  ASSERT_TRUE(product);
  EXPECT_THAT(product->sizes, ElementsAre(ElementsAre(2, 3), ElementsAre(3, 4)));
  EXPECT_THAT(product->types, ElementsAre("float", "float"));
  const auto message = message_of_inputs(trace.strings[trace.ops.inputs[4]]);
  ASSERT_TRUE(message);
  EXPECT_EQ(message->collective, "allreduce");
  EXPECT_EQ(message->in_elements, 7);
  EXPECT_EQ(message->out_elements, 0);
  EXPECT_EQ(message->group_size, 2);
}

TEST(KinetoJson, InputsThatAreNoneLeaveTheEvent) {
  std::string deep = "\"Input Dims\": " + std::string(300, '[') + std::string(300, ']');
  const Trace trace = load_text(document(
      op_event("aten::mm", deep) + "," + op_event("aten::mm", R"("Input Dims": {"a": 1})") + "," +
      op_event("aten::mm", R"("Input Dims": "text", "Input type": 5)") + "," +
      op_event("aten::mm", "\"Input Dims\": [" + std::string(5000, '1') + "]") + "," +
      kernel("k", 6)));
  ASSERT_EQ(trace.ops.size(), 4U);
  EXPECT_EQ(trace.ops.inputs[0], StringId{});
  EXPECT_EQ(trace.ops.inputs[3], StringId{});
  for (std::size_t row = 0; row < 3; ++row) {
    const auto product = product_of_inputs(trace.strings[trace.ops.inputs[row]]);
    EXPECT_TRUE(!product || product->sizes.empty());
  }
}

}  // namespace
}  // namespace gpuwhy
