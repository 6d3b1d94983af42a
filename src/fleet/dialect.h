// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace llmprof {

// What a ClickHouse server of some version can do. 18.16 is the oldest one known to work.
struct Dialect {
  int major = 0;
  int minor = 0;
  bool has_column_codecs = false;  // CODEC, LowCardinality without a flag, TTL
  bool has_insert_token = false;   // insert_deduplication_token
};

// From what "SELECT version()" answers. Throws kInput for what is no version.
Dialect dialect_of(std::string_view version);

struct SchemaOptions {
  std::string database = "llmprof";
  std::string cluster;  // empty: tables of one server
  int keep_days = 0;    // of the rows of single ranks; 0: for ever
};

// The statements that make the tables, in order; each may be made again. Throws kUsage for names
// that are no plain identifiers, and for keep_days on a server without TTL.
std::vector<std::string> schema_statements(const Dialect& dialect, const SchemaOptions& options);

// Parameters of a URL, as "&a=1&b=2", with which an insert is acknowledged only when it is stored,
// and known again when it comes twice.
std::string insert_parameters(const Dialect& dialect, std::string_view sha256);

// Throws kUsage unless `name` is letters, digits and '_', not a digit first: such a name may stand
// in a statement.
void check_identifier(std::string_view what, std::string_view name);

}  // namespace llmprof
