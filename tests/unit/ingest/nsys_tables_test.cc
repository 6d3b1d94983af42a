// SPDX-License-Identifier: Apache-2.0
//
// Exports whose tables lack columns.
#include <algorithm>
#include <span>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/text.h"
#include "ingest/ingest.h"
#include "made_sqlite.h"
#include "temporary.h"
#include "testing.h"

namespace gpuwhy {
namespace {

struct Table {
  const char* name;
  std::string_view columns;  // one row has these; "a|b" are two of which one will do
  const char* row;
};

constexpr Table kTables[] = {
    {"StringIds", "id value", "(1, 'gemm')"},
    {"CUPTI_ACTIVITY_KIND_KERNEL", "start end deviceId demangledName|shortName",
     "(100, 200, 0, 1, 1)"},
    {"CUPTI_ACTIVITY_KIND_MEMCPY", "start end deviceId bytes copyKind", "(200, 300, 0, 64, 1)"},
    {"CUPTI_ACTIVITY_KIND_MEMSET", "start end deviceId bytes", "(300, 400, 0, 64)"},
    {"CUPTI_ACTIVITY_KIND_GRAPH_TRACE", "start end deviceId", "(400, 500, 0)"},
    {"CUPTI_ACTIVITY_KIND_RUNTIME", "start end globalTid nameId", "(10, 20, 16777217, 1)"},
    {"OSRT_API", "start end globalTid nameId", "(30, 900030, 16777217, 1)"},
    {"NVTX_EVENTS", "start end eventType text|textId globalTid",
     "(5, 300, 59, 'prefill', NULL, 16777217)"},
    {"NVTX_PAYLOAD_SCHEMA_ENTRIES", "domainId schemaId type name offset", "(1, 1, 18, 'x', 0)"},
    {"CUDA_GRAPH_NODE_EVENTS", "start globalTid graphNodeId originalGraphNodeId",
     "(6, 16777217, 21, NULL)"},
    {"TARGET_INFO_GPU", "cuDevice|id name", "(0, 0, 'H100')"},
    {"TARGET_INFO_CUDA_DEVICE", "gpuId cudaId pid", "(0, 0, 1)"},
    {"TARGET_INFO_SESSION_START_TIME", "utcEpochNs", "(17)"},
    {"EXPORT_META_DATA", "name value", "('EXPORT_SCHEMA_VERSION', '1')"},
    {"META_DATA_EXPORT", "name value", "('EXPORT_PRODUCT_VERSION', '2026')"},
    {"META_DATA_CAPTURE", "name value", "('CUDA_GRAPH_TRACE_OPTIONS:MODE', 'node')"},
    {"ANALYSIS_DETAILS", "duration", "(1000)"},
    {"DIAGNOSTIC_EVENT", "timestamp severity text", "(5, 2, 'Some events were lost.')"},
};

class NsysTables : public testing::Test {
 protected:
  // All tables; `alone` has the columns that are given.
  Trace load(std::string_view alone = "", std::string_view columns = "") {
    std::filesystem::remove(path_);
    std::string sql;
    for (const Table& table : kTables) {
      std::string all(table.columns);
      std::replace(all.begin(), all.end(), '|', ' ');
      std::string list = table.name == alone ? std::string(columns) : all;
      std::replace(list.begin(), list.end(), ' ', ',');
      std::replace(all.begin(), all.end(), ' ', ',');
      // A table cannot be without columns.
      sql += fmt::format(
          "CREATE TEMP TABLE whole({0}); INSERT INTO whole VALUES {1};"
          "CREATE TABLE {2} AS SELECT 1 AS other{3}{4} FROM whole; DROP TABLE whole;",
          all, table.row, table.name, list.empty() ? "" : ",", list);
    }
    execute_sql(path_, "PRAGMA synchronous = OFF; BEGIN;" + sql + "COMMIT;");
    return load_trace(path_, 2);
  }

  TemporaryDirectory directory_;
  const std::filesystem::path path_ = directory_.path() / "made.sqlite";
};

std::vector<std::string> told(const Trace& trace) {
  std::vector<std::string> sentences;
  for (const Diagnostic& diagnostic : trace.diagnostics) {
    sentences.push_back(diagnostic.sentence);
  }
  return sentences;
}

// What is said of a table without each of its columns.
template <typename Check>
void each_lacking(const Table& table, Check check) {
  const std::vector<std::string_view> needed = split(table.columns, ' ');
  for (std::size_t i = 0; i < needed.size(); ++i) {
    std::string rest;
    for (std::size_t j = 0; j < needed.size(); ++j) {
      const std::string_view first = needed[j].substr(0, needed[j].find('|'));
      rest += j == i ? "" : fmt::format("{}{}", rest.empty() ? "" : " ", first);
    }
    const std::vector<std::string_view> names = split(needed[i], '|');
    check(rest, fmt::format("{}", fmt::join(names, " or ")));
  }
}

TEST_F(NsysTables, ThatHaveTheirColumnsAreReadWithoutAWord) {
  const Trace trace = load();
  EXPECT_THAT(told(trace), IsEmpty());
  EXPECT_EQ(trace.kernels.size(), 1U);
  EXPECT_EQ(trace.copies.size(), 2U);
  EXPECT_EQ(trace.graphs.size(), 1U);
  EXPECT_EQ(trace.ranges.size(), 1U);
  EXPECT_EQ(trace.functions.size(), 1U);
  EXPECT_EQ(trace.devices[0].name, "H100");
  EXPECT_EQ(trace.capture.utc_ns, 17);
  EXPECT_EQ(trace.capture.schema_version, "1");
  EXPECT_EQ(trace.capture.tool_version, "2026");
  EXPECT_EQ(trace.capture.graph_mode, "node");
  EXPECT_THAT(trace.capture.messages, ElementsAre("Some events were lost."));
}

TEST_F(NsysTables, OfNamesAndKernelsAreNeeded) {
  for (const Table& table : {kTables[0], kTables[1]}) {
    each_lacking(table, [&](const std::string& columns, const std::string& missing) {
      SCOPED_TRACE(missing);
      expect_error([&] { load(table.name, columns); }, ErrorKind::kInput,
                   HasSubstr(fmt::format("table {} of {} has no column {}", table.name,
                                         path_.string(), missing)),
                   _);
    });
  }
}

TEST_F(NsysTables, OfOtherKindsAreLeftOutAsIfNotThere) {
  for (const Table& table : std::span(kTables).subspan(2)) {
    each_lacking(table, [&](const std::string& columns, const std::string& missing) {
      SCOPED_TRACE(fmt::format("{} without {}", table.name, missing));
      const Trace trace = load(table.name, columns);
      EXPECT_THAT(told(trace), ElementsAre(fmt::format("left out table {}: it has no column {}",
                                                       table.name, missing)));
      EXPECT_EQ(trace.kernels.size(), 1U);
      const std::string_view name = table.name;
      EXPECT_EQ(trace.copies.size(),
                name.ends_with("MEMCPY") || name.ends_with("MEMSET") ? 1U : 2U);
      EXPECT_EQ(trace.graphs.size(), name.ends_with("GRAPH_TRACE") ? 0U : 1U);
      EXPECT_EQ(trace.api_calls.size(), name.ends_with("RUNTIME") ? 0U : 1U);
      EXPECT_EQ(trace.ranges.size(), name == "NVTX_EVENTS" ? 0U : 1U);
      EXPECT_EQ(trace.functions.size(), name == "OSRT_API" ? 0U : 1U);
      EXPECT_EQ(trace.devices[0].name, name == "TARGET_INFO_GPU" ? "" : "H100");
      EXPECT_EQ(trace.capture.messages.size(), name == "DIAGNOSTIC_EVENT" ? 0U : 1U);
      EXPECT_EQ(trace.capture.utc_ns.has_value(), name != "TARGET_INFO_SESSION_START_TIME");
      EXPECT_EQ(trace.capture.schema_version.empty(), name == "EXPORT_META_DATA");
      EXPECT_EQ(trace.capture.tool_version.empty(), name == "META_DATA_EXPORT");
      EXPECT_EQ(trace.capture.graph_mode.empty(), name == "META_DATA_CAPTURE");
    });
  }
}

}  // namespace
}  // namespace gpuwhy
