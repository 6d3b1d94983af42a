// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace llmprof {

// Capabilities of a ClickHouse server, by version. 18.16 is the oldest one known to work.
struct Dialect {
  int major = 0;
  int minor = 0;
  bool has_column_codecs = false;  // CODEC, LowCardinality without a flag, TTL
  bool has_insert_token = false;   // insert_deduplication_token
};

// From the result of "SELECT version()". Throws kInput if it is not a version.
Dialect dialect_of(std::string_view version);

// Where the tables go and how long rows are kept.
struct SchemaOptions {
  std::string database = "llmprof";
  std::string cluster;  // empty: tables of one server
  int keep_days = 0;    // for rows of single ranks; 0: forever
};

// The statements that create the tables, in order; each may be repeated. Throws kUsage for names
// that are not plain identifiers, and for keep_days on a server without TTL.
std::vector<std::string> schema_statements(const Dialect& dialect, const SchemaOptions& options);

// URL parameters, as "&a=1&b=2", with which an insert is acknowledged only once it is stored, and
// recognized if it is repeated.
std::string insert_parameters(const Dialect& dialect, std::string_view sha256);

// Throws kUsage unless `name` consists of letters, digits and '_' and does not start with a digit:
// such a name is safe in a statement.
void check_identifier(std::string_view what, std::string_view name);

}  // namespace llmprof
