// SPDX-License-Identifier: Apache-2.0
//
// Exports whose numbers cannot be. What they hold otherwise is what tests/golden reads.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "analysis/graph_names.h"
#include "analysis/profile.h"
#include "expect_error.h"
#include "ingest/ingest.h"
#include "made_sqlite.h"
#include "temporary.h"

namespace llmprof {
namespace {

using testing::_;
using testing::ElementsAre;
using testing::HasSubstr;

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
  EXPECT_EQ(profile(std::move(trace), Rules()).analysis.kernel_ns, 200);
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

}  // namespace
}  // namespace llmprof
