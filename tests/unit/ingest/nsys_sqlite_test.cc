// SPDX-License-Identifier: Apache-2.0
//
// Exports whose numbers cannot be. What they hold otherwise is what tests/golden reads.
#include <fmt/format.h>

#include "analysis/kernels/graph_names.h"
#include "analysis/profile.h"
#include "ingest/ingest.h"
#include "made_sqlite.h"
#include "temporary.h"
#include "testing.h"

namespace gpuwhy {
namespace {

constexpr const char* kTables =
    "CREATE TABLE StringIds(id INTEGER PRIMARY KEY, value TEXT);"
    "INSERT INTO StringIds VALUES (1, 'gemm'), (2, 'cudaLaunchKernel'), (3, 'prefill');"
    "CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL(start, end, deviceId, contextId, streamId, "
    "correlationId, globalPid, demangledName);"
    "CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME(start, end, globalTid, correlationId, nameId);"
    "CREATE TABLE NVTX_EVENTS(start, end, eventType, text, globalTid, textId, domainId);"
    "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (100, 200, 0, 1, 7, 1, 16777216, 1);"
    "INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (10, 20, 16777217, 1, 2);"
    "INSERT INTO NVTX_EVENTS VALUES (5, 300, 59, 'prefill', 16777217, NULL, 0);";

class NsysSqlite : public testing::Test {
 protected:
  Trace load(const std::string& sql) {
    const std::filesystem::path path = directory_.path() / "made.sqlite";
    std::filesystem::remove(path);
    execute_sql(path, kTables + sql);
    return load_trace(path, 2);
  }

  TemporaryDirectory directory_;
};

TEST_F(NsysSqlite, EventsThatLieAYearAwayAreLeftOutAndCounted) {
  Trace trace = load(
      "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (-9223372036090872117, 5, 1, 1, 7, 2, "
      "16777216, "
      "1), (300, 9223372036854775807, 0, 1, 7, 3, 16777216, 1), (400, 500, 0, 1, 7, 4, 16777216, "
      "1);"
      "INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (9223372036854775807, 5, 16777217, 2, 2);"
      "INSERT INTO NVTX_EVENTS VALUES (-9223372036854775808, NULL, 59, 'prefill', 16777217, NULL, "
      "0), (6, NULL, 59, 'prefill', 16777217, NULL, 0);");
  EXPECT_THAT(trace.kernels.start_ns.span(), ElementsAre(100, 400));
  EXPECT_THAT(trace.api_calls.start_ns.span(), ElementsAre(10));
  EXPECT_THAT(trace.ranges.start_ns.span(), ElementsAre(5, 6));
  EXPECT_EQ(trace.devices.size(), 1U);  // the other had nothing else
  ASSERT_EQ(trace.diagnostics.size(), 2U);
  EXPECT_EQ(trace.diagnostics[0].kind, "implausible_event");
  EXPECT_EQ(trace.diagnostics[0].count, 4);
  EXPECT_EQ(trace.diagnostics[0].severity, Severity::kImpossible);
  EXPECT_EQ(trace.diagnostics[0].sentence,
            "left out 2 of 4 kernels and 2 of 5 other events: a year or more from the recording's "
            "start");
  EXPECT_EQ(profile(std::move(trace), Rules()).analysis.capture.kernel_ns, 200);
}

TEST_F(NsysSqlite, RowsWithTextForNumbersAndEndsBeforeStartsAreLeftOutAndCounted) {
  const Trace trace = load(
      "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES ('abc', 300, 0, 1, 7, 2, 16777216, 1), "
      "(200, x'00', 0, 1, 7, 3, 16777216, 1), (200, 300, 'gpu', 1, 7, 4, 16777216, 1), "
      "(300, 200, 0, 1, 7, 5, 16777216, 1), (NULL, 200, 0, 1, 7, 6, 16777216, 1), "
      "(200.5, 300, 0, 1, 7, 7, 16777216, 1), (300, 300, 0, 1, 7, 8, 16777216, 1);"
      "INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (30, 20, 16777217, 2, 2), "
      "(30, 'x', 16777217, 3, 2);"
      "INSERT INTO NVTX_EVENTS VALUES ('x', 9, 59, 'prefill', 16777217, NULL, 0), "
      "(9, 5, 59, 'prefill', 16777217, NULL, 0), (9, 'x', 59, 'prefill', 16777217, NULL, 0), "
      "(9, 10, 'range', 'prefill', 16777217, NULL, 0), (9, 10, 59, 'prefill', 'main', NULL, 0), "
      "(6, NULL, 59, 'prefill', 16777217, NULL, 0);");
  EXPECT_THAT(trace.kernels.start_ns.span(), ElementsAre(100, 300));
  EXPECT_THAT(trace.api_calls.start_ns.span(), ElementsAre(10));
  EXPECT_THAT(trace.ranges.start_ns.span(), ElementsAre(5, 6));
  EXPECT_EQ(trace.devices.size(), 1U);
  ASSERT_EQ(trace.diagnostics.size(), 3U);
  EXPECT_EQ(trace.diagnostics[0].kind, "unusable_event");
  EXPECT_EQ(trace.diagnostics[0].count, 10);
  EXPECT_EQ(trace.diagnostics[1].kind, "ends_before_start");
  EXPECT_EQ(trace.diagnostics[1].count, 3);
  EXPECT_EQ(trace.diagnostics[2].kind, "open_range");
}

// A single one of many is named, and the rest is analyzed.
TEST_F(NsysSqlite, FewRowsThatAreLeftOutAreNoLoss) {
  Trace trace = load(
      "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 200) "
      "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL SELECT 1000 * i, 1000 * i + 500, 0, 1, 7, i, "
      "16777216, 1 FROM n; UPDATE CUPTI_ACTIVITY_KIND_KERNEL SET start = 'x' WHERE start = 9000;");
  ASSERT_EQ(trace.diagnostics.size(), 1U);
  EXPECT_EQ(trace.diagnostics[0].severity, Severity::kWarning);
  EXPECT_EQ(trace.diagnostics[0].sentence,
            "left out 1 of 201 kernels: text, or nothing, where a number belongs");
}

TEST_F(NsysSqlite, LongSystemCallsOfKnownThreadsAreKept) {
  const Trace trace = load(
      "INSERT INTO StringIds VALUES (4, 'read');"
      "CREATE TABLE OSRT_API(start, end, eventClass, globalTid, nameId);"
      "INSERT INTO OSRT_API VALUES (30, 250030, 27, 16777217, 4), (30, 250029, 27, 16777217, 4), "
      "(30, 900000, 27, 16777299, 4), (-9223372036854775808, 9, 27, 16777217, 4), "
      "(NULL, 'x', 27, 16777217, 4);");
  EXPECT_THAT(trace.functions.start_ns.span(), ElementsAre(30));
  EXPECT_THAT(trace.functions.end_ns.span(), ElementsAre(250'030));
  EXPECT_EQ(trace.strings[trace.functions.name[0]], "read()");
  EXPECT_EQ(trace.threads.size(), 1U);
}

TEST_F(NsysSqlite, KnowsWhetherTheCpuWasSampled) {
  EXPECT_FALSE(load("").capture.has_cpu_samples);
  EXPECT_TRUE(load("CREATE TABLE COMPOSITE_EVENTS(start, cpu);").capture.has_cpu_samples);
  EXPECT_TRUE(load("CREATE TABLE SCHED_EVENTS(start, cpu);").capture.has_cpu_samples);
}

TEST_F(NsysSqlite, KnowsUtcAsFarAsTheFileDoes) {
  EXPECT_EQ(load("").capture.utc_ns, std::nullopt);
  const std::string table = "CREATE TABLE TARGET_INFO_SESSION_START_TIME(utcEpochNs, utcTime);";
  EXPECT_EQ(load(table).capture.utc_ns, std::nullopt);
  EXPECT_EQ(
      load(table + "INSERT INTO TARGET_INFO_SESSION_START_TIME VALUES (17, 'x');").capture.utc_ns,
      17);
  EXPECT_EQ(load("CREATE TABLE TARGET_INFO_SESSION_START_TIME(other);").capture.utc_ns,
            std::nullopt);
}

TEST_F(NsysSqlite, SumsThatDoNotFitAreRefused) {
  expect_error(
      [&] {
        load(
            "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 200) "
            "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL SELECT 0, 31000000000000000, 0, 1, 7, i, "
            "16777216, 1 FROM n;");
      },
      ErrorKind::kInput, HasSubstr("longer than a century together"), _);
}

// Short ranges of many threads, each with a kernel that ends a year later.
TEST_F(NsysSqlite, StagesWhoseWindowsDoNotFitAreRefused) {
  const std::string numbers =
      "WITH RECURSIVE n(i) AS (SELECT 2 UNION ALL SELECT i + 1 FROM n WHERE i < 200) ";
  Trace trace =
      load(numbers +
           "INSERT INTO NVTX_EVENTS SELECT 0, 10, 59, 'execute_context_1(5)_generation_0(0)', "
           "16777216 + "
           "i, NULL, 0 FROM n;" +
           numbers +
           "INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME SELECT 1, 2, 16777216 + i, 100 + i, 2 FROM n;" +
           numbers +
           "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL SELECT 31000000000000000, 31000000000000001, 0, "
           "1, 7, "
           "100 + i, 16777216, 1 FROM n;");
  expect_error([&] { profile(std::move(trace), Rules()); }, ErrorKind::kInput,
               HasSubstr("stages last longer than a century together"), _);
}

constexpr const char* kGraphKernels =
    "ALTER TABLE CUPTI_ACTIVITY_KIND_KERNEL ADD COLUMN graphNodeId;"
    "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (300, 400, 0, 1, 7, 1, 16777216, 1, 21), "
    "(400, 500, 0, 1, 7, 1, 33554432, 1, 21), (500, 600, 0, 1, 7, 1, 16777216, 1, NULL), "
    "(600, 700, 0, 1, 7, 1, 16777216, 1, 21), (700, 800, 0, 1, 7, 1, 16777216, 1, -5);";

TEST_F(NsysSqlite, NodesAreNumberedByProcessAndId) {
  const Trace trace = load(kGraphKernels);
  EXPECT_THAT(trace.kernels.graph_node.span(), ElementsAre(kNoNode, 2, 3, kNoNode, 2, 4));
  ASSERT_EQ(trace.graph_nodes.size(), 5U);
  EXPECT_EQ(trace.graph_nodes[2].id, 21U);
  EXPECT_EQ(trace.graph_nodes[3].id, 21U);
  EXPECT_NE(trace.graph_nodes[2].process, trace.graph_nodes[3].process);
  EXPECT_EQ(trace.graph_nodes[4].id, static_cast<std::uint64_t>(-5));
}

TEST_F(NsysSqlite, CreationsOfNodesThatCannotBeAreLeftOut) {
  Trace trace = load(std::string(kGraphKernels) +
                     "CREATE TABLE CUDA_GRAPH_NODE_EVENTS(start, globalTid, graphNodeId, "
                     "originalGraphNodeId);"
                     "INSERT INTO CUDA_GRAPH_NODE_EVENTS VALUES (6, 16777217, 11, NULL), "
                     "(7, 16777217, 21, 11), (NULL, 16777217, 12, NULL), (8, NULL, 13, NULL), "
                     "(9, 16777217, NULL, 11), ('x', 'y', 'z', 'w'), (10, 16777217, -5, -5), "
                     "(-9223372036854775808, 16777217, 14, 9223372036854775807);"
                     "CREATE TABLE CUDA_GRAPH_EVENTS(start, globalTid, nameId, graphId);"
                     "INSERT INTO CUDA_GRAPH_EVENTS VALUES (6, 16777217, 1, 1);");
  EXPECT_EQ(trace.node_creations.size(), 4U);
  name_nodes_by_nvtx(trace);
  EXPECT_EQ(count_graph_names(trace).by_nvtx, 2);  // not of the other process
  EXPECT_EQ(trace.strings[trace.host_scopes[trace.graph_nodes[2].scope].name], "prefill");
}

// A copy then looks like a captured node.
TEST_F(NsysSqlite, NodesWithoutTheColumnOfOriginalsHaveNoNames) {
  const Trace trace = load(std::string(kGraphKernels) +
                           "CREATE TABLE CUDA_GRAPH_NODE_EVENTS(start, globalTid, graphNodeId);"
                           "INSERT INTO CUDA_GRAPH_NODE_EVENTS VALUES (6, 16777217, 21);");
  EXPECT_TRUE(trace.node_creations.empty());
}

// Ranges of NCCL with their payloads, as --include-blobs exports them.
class NcclRanges : public NsysSqlite {
 protected:
  static constexpr int kInit = 1;
  static constexpr int kSendRecv = 2;
  static constexpr int kReduce = 3;

  static std::string number(std::uint64_t value, int size) {
    std::string hex;
    for (int i = 0; i < size; ++i) {
      hex += fmt::format("{:02x}", value >> 8 * i & 0xff);
    }
    return hex;
  }
  static std::string blob(int schema, const std::string& fields, std::uint64_t domain = 1) {
    return number(domain, 8) + number(schema, 8) + number(fields.size() / 2, 8) + number(32, 8) +
           fields;
  }
  // A range of 10 ns; an empty payload is none.
  void range(std::int64_t start_ns, const char* name, const std::string& payload) {
    sql_ +=
        fmt::format("INSERT INTO NVTX_EVENTS VALUES ({}, {}, 59, '{}', 16777217, NULL, 1, {});",
                    start_ns, start_ns + 10, name, payload.empty() ? "NULL" : "x'" + payload + "'");
  }
  void launch(std::int64_t start_ns, int correlation) {
    sql_ += fmt::format(
        "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES ({0}, {0} + 5, 0, 1, 7, {1}, 16777216, 1);"
        "INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES ({0}, {0} + 2, 16777217, {1}, 2);",
        start_ns, correlation);
  }
  std::vector<std::string> found() {
    const Trace trace = load(
        "DROP TABLE NVTX_EVENTS; CREATE TABLE NVTX_EVENTS(start, end, eventType, text, globalTid, "
        "textId, domainId, binaryData TEXT);"
        "CREATE TABLE NVTX_PAYLOAD_SCHEMA_ENTRIES(domainId, schemaId, type, name, offset);"
        "INSERT INTO NVTX_PAYLOAD_SCHEMA_ENTRIES VALUES (1, 1, 18, 'NCCL communicator ID', NULL), "
        "(1, 1, 5, 'No. of ranks', 8), (1, 2, 18, 'NCCL communicator ID', NULL), "
        "(1, 2, 5, 'Peer rank', 16), (1, 3, 18, 'NCCL communicator ID', NULL), "
        "(1, 3, 22, 'Message size [bytes]', 8), (1, 4, 22, 'Other', 0);" +
        sql_);
    std::vector<std::string> words;
    for (const CollectiveKernel& kernel : trace.collective_kernels) {
      words.push_back(fmt::format("{} {} {}", kernel.correlation,
                                  trace.process_groups[kernel.group].name,
                                  trace.strings[kernel.collective]));
    }
    return words;
  }

  std::string sql_;
};

TEST_F(NcclRanges, NameTheCommunicatorOfKernelsLaunchedInside) {
  range(1000, "ncclAllReduce", blob(kReduce, number(0xabc, 8) + number(64, 8)));
  launch(1003, 5);
  launch(1012, 6);  // after it
  range(2000, "ncclAllGather", blob(kReduce, number(0xdef, 8) + number(64, 8)));
  launch(2003, 7);
  EXPECT_THAT(found(), ElementsAre("5 0x0000000000000abc ncclAllReduce",
                                   "7 0x0000000000000def ncclAllGather"));
}

TEST_F(NcclRanges, OfAGroupMustAgree) {
  const auto pair = [&](std::int64_t start_ns, std::uint64_t communicator, int to, int from) {
    range(start_ns, "ncclSend",
          blob(kSendRecv,
               number(communicator, 8) + number(9, 8) + number(static_cast<std::uint64_t>(to), 4)));
    range(start_ns + 20, "ncclRecv",
          blob(kSendRecv, number(communicator, 8) + number(9, 8) +
                              number(static_cast<std::uint64_t>(from), 4)));
  };
  range(900, "ncclCommInitRank", blob(kInit, number(7, 8) + number(2, 4)));
  // With both ranks of the communicator: an all-to-all.
  range(1000, "ncclGroupStart", "");
  pair(1020, 7, 0, 0);
  pair(1060, 7, 1, 1);
  range(1100, "ncclGroupEnd", "");
  launch(1103, 5);
  // With one of them: a send.
  range(2000, "ncclGroupStart", "");
  pair(2020, 7, 1, 1);
  range(2100, "ncclGroupEnd", "");
  launch(2103, 6);
  // Of two communicators: the kernel may be of either.
  range(3000, "ncclGroupStart", "");
  pair(3020, 7, 1, 1);
  pair(3060, 8, 1, 1);
  range(3100, "ncclGroupEnd", "");
  launch(3103, 7);
  // Of a group that began before the recording.
  range(4100, "ncclGroupEnd", "");
  launch(4103, 8);
  EXPECT_THAT(found(),
              ElementsAre("5 0x0000000000000007 all_to_all", "6 0x0000000000000007 ncclSend"));
}

TEST_F(NcclRanges, ThatDoNotFitAreLeftOut) {
  const std::string good = blob(kReduce, number(0xabc, 8) + number(64, 8));
  range(1000, "ncclAllReduce", good.substr(0, 60));                      // cut
  range(1100, "ncclAllReduce", blob(kReduce, number(0xabc, 8)) + "00");  // longer than it says
  range(1200, "ncclAllReduce", blob(kReduce, number(0xabc, 8), 2));      // another domain
  range(1300, "ncclAllReduce", blob(4, number(0xabc, 8)));               // not NCCL's
  range(1400, "ncclAllReduce", blob(kReduce, number(0xabc, 4)));         // too short
  range(1500, "ncclCommCount", good);                                    // launches nothing
  for (int i = 0; i < 6; ++i) {
    launch(1003 + 100 * i, 10 + i);
  }
  EXPECT_THAT(found(), ElementsAre());
}

}  // namespace
}  // namespace gpuwhy
