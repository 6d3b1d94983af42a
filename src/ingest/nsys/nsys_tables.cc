// SPDX-License-Identifier: Apache-2.0
//
// Tables of an nsys export that are read, and the columns that each needs.
#include "ingest/nsys/nsys_tables.h"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error.h"
#include "base/text.h"

namespace gpuwhy {
namespace {

enum class Without {  // a column that it needs
  kRefuse,
  kLeaveOut,
  kSilent,  // other versions of nsys keep something else under this name
};

struct Table {
  std::string_view name;
  Without without;
  std::string_view needed;  // columns; "a|b" where either will do
};

constexpr Table kTables[] = {
    {"StringIds", Without::kRefuse, "id value"},
    {"CUPTI_ACTIVITY_KIND_KERNEL", Without::kRefuse, "start end deviceId demangledName|shortName"},
    {"CUPTI_ACTIVITY_KIND_MEMCPY", Without::kLeaveOut, "start end deviceId bytes copyKind"},
    {"CUPTI_ACTIVITY_KIND_MEMSET", Without::kLeaveOut, "start end deviceId bytes"},
    {"CUPTI_ACTIVITY_KIND_GRAPH_TRACE", Without::kLeaveOut, "start end deviceId"},
    {"CUPTI_ACTIVITY_KIND_RUNTIME", Without::kLeaveOut, "start end globalTid nameId"},
    {"OSRT_API", Without::kLeaveOut, "start end globalTid nameId"},
    {"NVTX_EVENTS", Without::kLeaveOut, "start end eventType text|textId globalTid"},
    {"NVTX_PAYLOAD_SCHEMA_ENTRIES", Without::kLeaveOut, "domainId schemaId type name offset"},
    {"CUDA_GRAPH_NODE_EVENTS", Without::kLeaveOut,
     "start globalTid graphNodeId originalGraphNodeId"},
    {"CUDA_GRAPH_EVENTS", Without::kSilent, "start globalTid graphNodeId originalGraphNodeId"},
    {"TARGET_INFO_GPU", Without::kLeaveOut, "cuDevice|id name"},
    {"TARGET_INFO_CUDA_GPU", Without::kLeaveOut, "deviceId name"},
    {"TARGET_INFO_CUDA_DEVICE", Without::kLeaveOut, "gpuId cudaId pid"},
    {"TARGET_INFO_SESSION_START_TIME", Without::kLeaveOut, "utcEpochNs"},
    {"EXPORT_META_DATA", Without::kLeaveOut, "name value"},
    {"META_DATA_EXPORT", Without::kLeaveOut, "name value"},
    {"META_DATA_CAPTURE", Without::kLeaveOut, "name value"},
    {"COMPOSITE_EVENTS", Without::kSilent, "start"},
    {"SCHED_EVENTS", Without::kSilent, "start"},
    {"ANALYSIS_DETAILS", Without::kLeaveOut, "duration"},
    {"DIAGNOSTIC_EVENT", Without::kLeaveOut, "timestamp severity text"},
};

// The first needed column that is not there; empty if all are.
std::string missing_column(std::string_view needed, const std::vector<std::string>& columns) {
  for (const std::string_view alternatives : split(needed, ' ')) {
    const std::vector<std::string_view> names = split(alternatives, '|');
    const bool is_there = std::ranges::any_of(names, [&](std::string_view name) {
      return std::ranges::find(columns, name) != columns.end();
    });
    if (!is_there) {
      return fmt::format("{}", fmt::join(names, " or "));
    }
  }
  return {};
}

}  // namespace

NsysTables::NsysTables(const SqliteFile& file) : file_(file) {
  std::vector<const Table*> present;  // a recording has few of the tables
  file.query("SELECT lower(name) FROM sqlite_master", [&](const auto& row) {
    for (const Table& table : kTables) {
      if (to_lower(table.name) == row[0].as_text()) {
        present.push_back(&table);
      }
    }
  });
  for (const Table& table : kTables) {
    const std::vector<std::string> columns = std::ranges::find(present, &table) == present.end()
                                                 ? std::vector<std::string>()
                                                 : file.columns_of(std::string(table.name));
    if (columns.empty()) {
      continue;
    }
    const std::string missing = missing_column(table.needed, columns);
    if (missing.empty()) {
      readable_.insert(table.name);
    } else if (table.without == Without::kRefuse) {
      throw Error(
          ErrorKind::kInput,
          fmt::format("table {} of {} has no column {}", table.name, file.path().string(), missing),
          "run nsys export again");
    } else if (table.without == Without::kLeaveOut) {
      left_out_.push_back(
          {"missing_column", Severity::kWarning, 1,
           fmt::format("left out table {}: it has no column {}", table.name, missing)});
    }
  }
}

bool NsysTables::has(std::string_view table) const {
  return readable_.contains(table);
}

TableScan NsysTables::scan(std::string_view table, std::vector<std::string> columns) const {
  return {file_, has(table) ? std::string(table) : "", std::move(columns)};
}

}  // namespace gpuwhy
