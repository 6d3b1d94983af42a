// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace gpuwhy {

// Capabilities of a ClickHouse server, by version. 18.16 is the oldest one known to work.
struct Dialect {
  int major = 0;
  int minor = 0;
  bool has_column_codecs = false;  // CODEC, LowCardinality without a flag, TTL
  bool has_insert_token = false;   // insert_deduplication_token
};

// From the result of "SELECT version()". Throws kInput if it is not a version.
Dialect dialect_of(std::string_view version);

// The version of the tables. A new column raises it; `gpuwhy fleet init` adds the columns that
// older tables lack. Rows are inserted with their list of columns, so programs of both versions can
// push to tables of the newer one.
//   1  as first released
//   2  ranks.labels
//   3  parts, ranks.part_rows
inline constexpr int kSchemaVersion = 3;
inline constexpr const char* kVersionTable = "schema_versions";

// Where the tables go and how long rows are kept.
struct SchemaOptions {
  std::string database = "gpuwhy";
  std::string cluster;  // empty: tables of one server
  int keep_days = 0;    // for rows of single ranks; 0: forever
};

// The statements that create the tables, in order; each may be repeated. Throws kUsage for names
// that are not plain identifiers, and for keep_days on a server without TTL.
std::vector<std::string> schema_statements(const Dialect& dialect, const SchemaOptions& options);

// What a server says about the tables it has.
struct ExistingTables {
  std::map<std::string, std::set<std::string>> columns;  // by table
  int version = 0;                                       // 0: no table of versions
  std::optional<int> keep_days;                          // nullopt: rows are kept
};

// The statements that bring existing tables up to date: missing columns, and another age limit if
// `options` has one. Throws kUsage if the tables are of a cluster and none is named, kEnvironment
// if a newer gpuwhy made them.
std::vector<std::string> migration_statements(const Dialect& dialect, const SchemaOptions& options,
                                              const ExistingTables& existing);

// Queries for ExistingTables; each returns tab-separated text.
std::string existing_columns_query(const std::string& database);
std::string kernels_definition_query(const std::string& database);

// The age limit in a table's definition, as ClickHouse prints it: "TTL day + toIntervalDay(30)".
std::optional<int> keep_days_in(std::string_view definition);

// The columns of a table up to a version, in the order of RowBinary rows, as "a, b, c". Empty for
// an unknown table.
std::string column_list(std::string_view table, int version = kSchemaVersion);

// URL parameters, as "&a=1&b=2", with which an insert is acknowledged only once it is stored, and
// recognized if it is repeated.
std::string insert_parameters(const Dialect& dialect, std::string_view sha256);

// Throws kUsage unless `name` consists of letters, digits and '_' and does not start with a digit:
// such a name is safe in a statement.
void check_identifier(std::string_view what, std::string_view name);

}  // namespace gpuwhy
