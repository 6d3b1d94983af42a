// SPDX-License-Identifier: Apache-2.0
//
// ClickHouse schema of the history, adapted to the server's version.
//
// Fact rows contain only numbers: runs, stages, kernels and families are represented by the first
// 64 bits of their SHA-256, and the table `names` has their names. So untrusted names never become
// part of a statement, and a row takes the same few bytes whatever its kernel is called.
//
// Nothing is updated. A row is identified by its contents: `content` is the hash of the summary it
// comes from. If the same row is sent again, in other batches or through another node,
// ReplacingMergeTree keeps one. Which summary counts for a rank is recorded in `ranks`, which is
// written last: a rank whose rows have only partly arrived is invisible. ClickHouse's own
// deduplication of inserts (by hash or token) saves work, but it forgets after a while, and
// correctness does not depend on it.
//
// There are no materialized views and no summing tables: fed twice, they count twice and cannot be
// repaired.
//
// `kernel_runs` is `kernels` summed over ranks, created when a run is complete; queries over months
// read it instead. `seals` records for which summaries it was created.
#include "fleet/history/clickhouse_schema.h"

#include <algorithm>
#include <cctype>
#include <charconv>

#include <fmt/format.h>

#include "base/error.h"
#include "base/text.h"
#include "results/rank_summary.h"

namespace gpuwhy {
namespace {

// A column: name, type, and codec if the server supports them.
struct ServerColumn {
  std::string name;
  const char* type;
  const char* codec = "";  // where columns have codecs
  int since = 1;           // version of the schema that added it
};
using ServerColumns = std::vector<ServerColumn>;

// A table: its columns, version column, sort key and sharding key.
struct HistoryTable {
  const char* name;
  ServerColumns columns;
  const char* version;  // of two rows with one key, the larger one stays
  const char* order;
  const char* shard;         // rows of one key are on one shard, or they would not meet
  bool is_of_ranks = false;  // grows with ranks: may be dropped by age
};

// Codecs: numbers that grow or repeat in row order are small as differences.
constexpr const char* kDelta = "CODEC(Delta, ZSTD(1))";
constexpr const char* kPacked = "CODEC(T64, ZSTD(1))";
constexpr const char* kZstd = "CODEC(ZSTD(1))";

// The columns of a row of facts: of its texts, whose keys they hold, or of all else.
template <typename Row>
ServerColumns fact_columns(bool of_texts, const char* codec, int since = 1) {
  ServerColumns columns;
  describe(static_cast<const Row*>(nullptr), [&](const char* key, auto member, const Field& field) {
    using Value = ValueOf<Row, decltype(member)>;
    if ((field.forms & kFormServer) == 0 || kIsText<Value> != of_texts) {
      return;
    }
    if constexpr (kIsText<Value>) {
      columns.push_back({fmt::format("{}_key", key), "UInt64", codec, since});
    } else if constexpr (std::is_same_v<Value, std::int64_t>) {
      columns.push_back({key, "UInt64", codec, since});
    } else if constexpr (std::is_same_v<Value, BucketTimes>) {
      columns.push_back({key, "Array(UInt64)", codec, since});
    } else {
      columns.push_back({"hist_steps", "Array(UInt16)", kZstd, since});
      columns.push_back({"hist_counts", "Array(UInt64)", kZstd, since});
    }
  });
  return columns;
}

ServerColumns joined(std::initializer_list<ServerColumns> parts) {
  ServerColumns columns;
  for (const ServerColumns& part : parts) {
    columns.insert(columns.end(), part.begin(), part.end());
  }
  return columns;
}

// The table of a rank's facts: every row begins with whose it is.
template <typename Row>
ServerColumns rank_facts(const char* codec_of_keys, const char* codec, int since = 1) {
  const ServerColumns place = {{"run_key", "UInt64", codec_of_keys, since},
                               {"rank", "UInt32", codec_of_keys, since},
                               {"content", "UInt64", "", since},
                               {"day", "Date", codec_of_keys, since}};
  return joined({place, fact_columns<Row>(true, codec_of_keys, since),
                 fact_columns<Row>(false, codec, since)});
}

std::vector<HistoryTable> history_tables() {
  const ServerColumns ranks = {{"run_key", "UInt64"},
                               {"rank", "UInt32"},
                               {"attempt", "UInt32"},
                               {"content", "UInt64"},
                               {"day", "Date"},
                               {"ver", "UInt64"},
                               {"run_id", "String"},
                               {"num_ranks", "UInt32"},
                               {"node", "String"},
                               {"gpu", "Word"},
                               {"model", "Word"},
                               {"engine", "Word"},
                               {"engine_version", "Word"},
                               {"driver_version", "Word"},
                               {"gpuwhy_version", "Word"},
                               {"started_unix_s", "Int64"},
                               {"kernel_rows", "UInt64"},
                               {"stage_rows", "UInt64"},
                               {"labels", "String", "", 2},
                               {"part_rows", "UInt64", "", 3}};
  const ServerColumns kernel_runs = joined(
      {{{"run_key", "UInt64", kDelta}, {"fingerprint", "UInt64", kDelta}, {"day", "Date", kDelta}},
       fact_columns<KernelSums>(true, kDelta),
       {{"ranks", "UInt32", kDelta}},
       fact_columns<KernelSums>(false, kPacked)});
  const ServerColumns seals = {{"run_key", "UInt64"},
                               {"fingerprint", "UInt64"},
                               {"day", "Date"},
                               {"ranks", "UInt32"},
                               {"rows", "UInt64"}};
  return {
      {"names",
       {{"name_key", "UInt64", kDelta}, {"name", "String", kZstd}},
       "",
       "name_key",
       "name_key"},
      {"kernels", rank_facts<KernelSums>(kDelta, kPacked), "",
       "(run_key, stage_key, kernel_key, family_key, rank, content)", "cityHash64(run_key, rank)",
       true},
      {"stages", rank_facts<StageSums>("", ""), "", "(run_key, stage_key, rank, content)",
       "cityHash64(run_key, rank)"},
      {"parts", rank_facts<PartRow>(kDelta, kPacked, 3), "",
       "(run_key, pass_key, block_key, part_key, rank, content)", "cityHash64(run_key, rank)",
       true},
      {"ranks", ranks, "ver", "(run_key, rank)", "cityHash64(run_key, rank)"},
      {"kernel_runs", kernel_runs, "", "(run_key, fingerprint, stage_key, kernel_key, family_key)",
       "cityHash64(run_key)"},
      {"seals", seals, "", "(run_key, fingerprint)", "cityHash64(run_key)"},
      {kVersionTable, {{"version", "UInt32", "", 2}}, "", "version", "version"},
  };
}

std::string column_text(const ServerColumn& column, const Dialect& dialect) {
  std::string type = column.type;
  if (type == "Word") {  // text with few values
    type = dialect.has_column_codecs ? "LowCardinality(String)" : "String";
  }
  const std::string codec = dialect.has_column_codecs ? column.codec : "";
  return fmt::format("{} {}{}{}", column.name, type, codec.empty() ? "" : " ", codec);
}

// The table of names has no day and a single partition.
bool has_day(const HistoryTable& table) {
  return std::any_of(table.columns.begin(), table.columns.end(),
                     [](const ServerColumn& column) { return column.name == "day"; });
}

std::string engine_text(const HistoryTable& table, const Dialect& dialect,
                        const SchemaOptions& options) {
  const bool is_replicated = !options.cluster.empty();
  std::string arguments = is_replicated
                              ? fmt::format("'/clickhouse/tables/{{shard}}/{}/{}', '{{replica}}'",
                                            options.database, table.name)
                              : "";
  if (*table.version != '\0') {
    arguments += (arguments.empty() ? "" : ", ") + std::string(table.version);
  }
  std::string text = fmt::format("ENGINE = {}ReplacingMergeTree({})",
                                 is_replicated ? "Replicated" : "", arguments);
  if (has_day(table)) {
    text += " PARTITION BY toYYYYMM(day)";
  }
  text += fmt::format(" ORDER BY {}", table.order);
  if (table.is_of_ranks && options.keep_days > 0) {
    text += fmt::format(" TTL day + INTERVAL {} DAY", options.keep_days);
  }
  if (is_replicated) {
    text += " SETTINGS replicated_deduplication_window = 10000";
  } else if (dialect.has_insert_token) {
    text += " SETTINGS non_replicated_deduplication_window = 10000";
  }
  return text;
}

int number_at(std::string_view text, std::size_t& position) {
  int number = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, failure] = std::from_chars(text.data() + position, end, number);
  if (failure != std::errc()) {
    return -1;
  }
  position = static_cast<std::size_t>(stop - text.data());
  return number;
}

}  // namespace

Dialect dialect_of(std::string_view version) {
  const std::string_view text = trim(version);
  std::size_t position = 0;
  Dialect dialect;
  dialect.major = number_at(text, position);
  const bool has_dot = position < text.size() && text[position] == '.';
  ++position;
  dialect.minor = has_dot ? number_at(text, position) : -1;
  if (dialect.major < 1 || dialect.minor < 0 || text.size() > 64) {
    throw Error(ErrorKind::kInput, "the server does not report a ClickHouse version");
  }
  const auto is_since = [&](int major, int minor) {
    return dialect.major > major || (dialect.major == major && dialect.minor >= minor);
  };
  // From ClickHouse's changelogs: T64 and TTL of tables 19.6..19.14, LowCardinality without a flag
  // 19.0, insert_deduplication_token 22.2, non_replicated_deduplication_window 21.3.
  dialect.has_column_codecs = is_since(20, 3);
  dialect.has_insert_token = is_since(22, 2);
  return dialect;
}

void check_identifier(std::string_view what, std::string_view name) {
  const bool is_plain = !name.empty() && name.size() <= 64 &&
                        std::isdigit(static_cast<unsigned char>(name[0])) == 0 &&
                        std::all_of(name.begin(), name.end(), [](unsigned char c) {
                          return c < 0x80 && (std::isalnum(c) != 0 || c == '_');
                        });
  if (!is_plain) {
    throw Error(ErrorKind::kUsage,
                fmt::format("{} cannot be '{}'", what, printable(name.substr(0, 80))),
                "letters, digits and '_'");
  }
}

std::vector<std::string> schema_statements(const Dialect& dialect, const SchemaOptions& options) {
  check_identifier("--database", options.database);
  if (!options.cluster.empty()) {
    check_identifier("--cluster", options.cluster);
  }
  if (options.keep_days > 0 && !dialect.has_column_codecs) {
    throw Error(
        ErrorKind::kUsage,
        fmt::format("ClickHouse {}.{} cannot drop rows by age", dialect.major, dialect.minor),
        "leave --keep-days out and drop old months yourself: ALTER TABLE kernels DROP "
        "PARTITION 202601");
  }
  const std::string where =
      options.cluster.empty() ? "" : fmt::format(" ON CLUSTER {}", options.cluster);
  std::vector<std::string> statements = {
      fmt::format("CREATE DATABASE IF NOT EXISTS {}{}", options.database, where)};
  for (const HistoryTable& table : history_tables()) {
    std::vector<std::string> columns;
    for (const ServerColumn& column : table.columns) {
      columns.push_back(column_text(column, dialect));
    }
    // On a cluster each table is a local one plus a Distributed one of the plain name.
    const bool is_cluster = !options.cluster.empty();
    const std::string local = table.name + std::string(is_cluster ? "_local" : "");
    statements.push_back(fmt::format("CREATE TABLE IF NOT EXISTS {}.{}{} ({}) {}", options.database,
                                     local, where, fmt::join(columns, ", "),
                                     engine_text(table, dialect, options)));
    if (is_cluster) {
      statements.push_back(
          fmt::format("CREATE TABLE IF NOT EXISTS {0}.{1}{2} ({3}) ENGINE = Distributed({4}, {0}, "
                      "{1}_local, {5})",
                      options.database, table.name, where, fmt::join(columns, ", "),
                      options.cluster, table.shard));
    }
  }
  return statements;
}

std::string existing_columns_query(const std::string& database) {
  return fmt::format(
      "SELECT table, name FROM system.columns WHERE database = '{}' FORMAT TabSeparated", database);
}

std::string kernels_definition_query(const std::string& database) {
  return fmt::format(
      "SELECT create_table_query FROM system.tables WHERE database = '{}' AND name IN ('kernels', "
      "'kernels_local') FORMAT TabSeparated",
      database);
}

std::optional<int> keep_days_in(std::string_view definition) {
  constexpr std::string_view kLimit = "TTL day + toIntervalDay(";
  std::size_t position = definition.find(kLimit);
  if (position == std::string_view::npos) {
    return std::nullopt;
  }
  position += kLimit.size();
  const int days = number_at(definition, position);
  return days > 0 ? std::optional(days) : std::nullopt;
}

std::string column_list(std::string_view name, int version) {
  std::vector<std::string> columns;
  for (const HistoryTable& table : history_tables()) {
    for (const ServerColumn& column : table.columns) {
      if (name == table.name && column.since <= version) {
        columns.push_back(column.name);
      }
    }
  }
  return fmt::format("{}", fmt::join(columns, ", "));
}

std::vector<std::string> migration_statements(const Dialect& dialect, const SchemaOptions& options,
                                              const ExistingTables& existing) {
  if (existing.version > kSchemaVersion) {
    throw Error(ErrorKind::kEnvironment,
                fmt::format("a newer gpuwhy made these tables (version {}, this program knows {})",
                            existing.version, kSchemaVersion),
                "leave them: this program can push to them and query them as they are");
  }
  const bool is_cluster = !options.cluster.empty();
  if (!is_cluster && existing.columns.contains("kernels_local")) {
    throw Error(ErrorKind::kUsage, "these tables are those of a cluster",
                "name it: --cluster NAME, as in remote_servers of the server's configuration");
  }
  const std::string where = is_cluster ? fmt::format(" ON CLUSTER {}", options.cluster) : "";
  std::vector<std::string> statements;
  for (const HistoryTable& table : history_tables()) {
    // First where the rows are, then the view of all shards.
    for (const char* ending : {"_local", ""}) {
      const auto found = existing.columns.find(table.name + std::string(ending));
      if (found == existing.columns.end()) {
        continue;
      }
      for (const ServerColumn& column : table.columns) {
        if (!found->second.contains(column.name)) {
          statements.push_back(fmt::format("ALTER TABLE {}.{}{} ADD COLUMN {}", options.database,
                                           found->first, where, column_text(column, dialect)));
        }
      }
    }
    if (table.is_of_ranks && options.keep_days > 0 && existing.keep_days != options.keep_days &&
        existing.columns.contains(table.name)) {
      statements.push_back(fmt::format("ALTER TABLE {}.{}{}{} MODIFY TTL day + INTERVAL {} DAY",
                                       options.database, table.name, is_cluster ? "_local" : "",
                                       where, options.keep_days));
    }
  }
  return statements;
}

std::string insert_parameters(const Dialect& dialect, std::string_view sha256) {
  // Otherwise a Distributed table acknowledges before its shards have the rows.
  std::string parameters = "&insert_distributed_sync=1";
  if (dialect.has_insert_token) {
    // Newer releases buffer inserts on the server first; an acknowledgement must mean that rows are
    // stored.
    parameters += fmt::format("&async_insert=0&insert_deduplication_token={}", sha256);
  }
  return parameters;
}

}  // namespace gpuwhy
