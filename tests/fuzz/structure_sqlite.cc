// SPDX-License-Identifier: Apache-2.0
//
// Changes of nsys exports by SQL: tables renamed, columns dropped, added and retyped, views,
// computed columns, virtual tables, triggers, cells of foreign types, and a few bytes of a page.
//
// The database is opened in memory. A statement that SQLite refuses changes nothing, and another
// one is tried.
#include <algorithm>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <vector>

#include <fmt/format.h>
#include <sqlite3.h>

#include "fuzz/structure.h"
#include "ingest/nsys/nsys_columns.h"

namespace gpuwhy {
namespace {

constexpr std::string_view kNsysTables[] = {"ANALYSIS_DETAILS",
                                            "CUDA_GRAPH_EVENTS",
                                            "CUDA_GRAPH_NODE_EVENTS",
                                            "CUPTI_ACTIVITY_KIND_GRAPH_TRACE",
                                            "CUPTI_ACTIVITY_KIND_KERNEL",
                                            "CUPTI_ACTIVITY_KIND_MEMCPY",
                                            "CUPTI_ACTIVITY_KIND_MEMSET",
                                            "CUPTI_ACTIVITY_KIND_RUNTIME",
                                            "DIAGNOSTIC_EVENT",
                                            "EXPORT_META_DATA",
                                            "META_DATA_CAPTURE",
                                            "META_DATA_EXPORT",
                                            "NVTX_EVENTS",
                                            "OSRT_API",
                                            "StringIds",
                                            "TARGET_INFO_CUDA_DEVICE",
                                            "TARGET_INFO_CUDA_GPU",
                                            "TARGET_INFO_GPU",
                                            "TARGET_INFO_SESSION_START_TIME"};
// Values at the edges, of every type, and texts that mean something to the analysis.
constexpr std::string_view kSqlValues[] = {"NULL",
                                           "0",
                                           "1",
                                           "-1",
                                           "60",
                                           "2147483648",
                                           "4294967295",
                                           "4294967296",
                                           "9007199254740993",
                                           "4611686018427387904",
                                           "9223372036854775807",
                                           "(-9223372036854775807 - 1)",
                                           "1.5",
                                           "-1e300",
                                           "9e999",
                                           "''",
                                           "'12'",
                                           "x'00ff'",
                                           "CAST(x'ff4100' AS TEXT)",
                                           "zeroblob(3000)",
                                           "printf('%.*c', 3000, 'k')",
                                           "'cudaGraphLaunch_v10000'",
                                           "'cudaStreamSynchronize_v3020'",
                                           "'ncclDevKernel_AllReduce_Sum_bf16_RING_LL'",
                                           "'void flash_fwd_kernel<128>(Params)'",
                                           "'sm90_xmma_gemm_bf16bf16_bf16f32'",
                                           "'execute_context_1(8)_generation_2(2)'",
                                           "'decode'",
                                           "'aten::mm, seq = 5'"};
constexpr std::string_view kSqlTypes[] = {
    "INTEGER", "TEXT", "REAL", "BLOB", "DOUBLE", "INTEGER PRIMARY KEY", "INTEGER DEFAULT 5", ""};

std::string sql_quoted(std::string_view name) {
  std::string text = "\"";
  for (const char c : name) {
    text += c == '"' ? "\"\"" : std::string(1, c);
  }
  return text + "\"";
}

// A database in memory that SQL may change.
class Database {
 public:
  Database(std::string_view bytes, std::size_t most_bytes) {
    sqlite3_open(":memory:", &connection_);
    auto* copy =
        static_cast<unsigned char*>(sqlite3_malloc64(std::max<std::size_t>(bytes.size(), 1)));
    std::memcpy(copy, bytes.data(), bytes.size());
    const auto size = static_cast<sqlite3_int64>(bytes.size());
    sqlite3_deserialize(connection_, "main", copy, size, size,
                        SQLITE_DESERIALIZE_FREEONCLOSE | SQLITE_DESERIALIZE_RESIZEABLE);
    auto limit = static_cast<sqlite3_int64>(most_bytes);
    sqlite3_file_control(connection_, "main", SQLITE_FCNTL_SIZE_LIMIT, &limit);
    // An endless view may be among what earlier changes made.
    const std::size_t most_steps = 1'000'000 + 50 * most_bytes;
    sqlite3_progress_handler(
        connection_, static_cast<int>(std::min<std::size_t>(most_steps, INT_MAX)),
        [](void*) { return 1; }, nullptr);
    run("PRAGMA journal_mode = MEMORY; PRAGMA writable_schema = ON");
  }
  ~Database() { sqlite3_close(connection_); }
  Database(const Database&) = delete;
  Database& operator=(const Database&) = delete;

  // Whether SQLite took all of it.
  bool run(const std::string& sql) {
    return sqlite3_exec(connection_, sql.c_str(), nullptr, nullptr, nullptr) == SQLITE_OK;
  }

  // All of it or nothing.
  bool run_whole(const std::string& sql) {
    const bool is_done = run("BEGIN; " + sql + "; COMMIT");
    if (!is_done) {
      run("ROLLBACK");
    }
    return is_done;
  }

  // The first column of each row.
  std::vector<std::string> texts(const std::string& sql) {
    std::vector<std::string> texts;
    sqlite3_exec(
        connection_, sql.c_str(),
        [](void* found, int, char** values, char**) {
          static_cast<std::vector<std::string>*>(found)->emplace_back(
              values[0] == nullptr ? "" : values[0]);
          return 0;
        },
        &texts, nullptr);
    return texts;
  }
  std::vector<std::string> tables() {
    return texts(
        "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'");
  }
  std::vector<std::string> columns(const std::string& table) {
    return texts(fmt::format("SELECT name FROM pragma_table_info({})", sql_quoted(table)));
  }

  std::string bytes() {
    sqlite3_int64 size = 0;
    unsigned char* copy = sqlite3_serialize(connection_, "main", &size, 0);
    std::string bytes(reinterpret_cast<const char*>(copy),
                      copy == nullptr ? 0 : static_cast<std::size_t>(size));
    sqlite3_free(copy);
    return bytes;
  }

 private:
  sqlite3* connection_ = nullptr;
};

std::string known_column(Random& random) {
  static const std::vector<std::string> kNames =
      column_names<NsysStringColumns, NsysGpuColumns, NsysKernelColumns, NsysCopyColumns,
                   NsysCallColumns, NsysNvtxColumns, NsysNodeColumns, NsysDeviceColumns,
                   OldNsysDeviceColumns>();
  return sql_quoted(one_of(kNames, random));
}

// A statement that changes this table.
std::string change_of(const std::string& table, const std::vector<std::string>& columns,
                      const std::vector<std::string>& tables, Random& random) {
  const std::string t = sql_quoted(table);
  const std::string c = sql_quoted(one_of(columns, random));
  const std::string other = sql_quoted(one_of(columns, random));
  const std::string name = sql_quoted(one_of(kNsysTables, random));
  const std::string_view value = one_of(kSqlValues, random);
  const std::string_view type = one_of(kSqlTypes, random);
  const std::size_t every = 1 + pick(random, 7);
  const std::string some = fmt::format("WHERE rowid % {} = {}", every, pick(random, every));
  // A table that is a program is refused, and so is all that is made of that file.
  constexpr std::size_t kPlain = 24;
  constexpr std::size_t kKinds = 29;
  switch (pick(random, pick(random, 25) == 0 ? kKinds : kPlain)) {
    // Cells, most often: their values reach furthest.
    case 0:
    case 1:
    case 2:
    case 3:
    case 4:
      return fmt::format("UPDATE {} SET {} = {} {}", t, c, value, some);
    case 5:
      return fmt::format("UPDATE {} SET {} = {} {}", t, c, other, some);
    case 6:
      return fmt::format("UPDATE {} SET {} = {} + {} {}", t, c, c,
                         static_cast<std::int64_t>(pick(random, 2001)) - 1000, some);
    case 7:
      return fmt::format("UPDATE {} SET {} = {} * {} {}", t, c, c, pick(random, 2000), some);
    case 8:
      return fmt::format("UPDATE {} SET {} = rowid {}", t, c, some);
    case 9:
      return fmt::format("UPDATE {} SET {} = (SELECT {} FROM {} ORDER BY rowid LIMIT 1 OFFSET {})",
                         t, c, other, t, pick(random, 20));
    // Rows.
    case 10:
      return fmt::format("DELETE FROM {} {}", t, some);
    case 11:
      return fmt::format("INSERT OR IGNORE INTO {} SELECT * FROM {} LIMIT {}", t, t,
                         1 + pick(random, 30));
    case 12:
      return fmt::format("INSERT OR IGNORE INTO {} ({}) VALUES ({})", t, c, value);
    case 13:
      return fmt::format(
          "WITH RECURSIVE i(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM i WHERE n < {}) "
          "INSERT OR IGNORE INTO {} ({}) SELECT n * {} FROM i",
          1 + pick(random, 300), t, c, 1 + pick(random, 1000));
    // The schema.
    case 14:
      return fmt::format("ALTER TABLE {} RENAME TO {}", t, name);
    case 15:
      return fmt::format("ALTER TABLE {} DROP COLUMN {}", t, c);
    case 16:
      return fmt::format("ALTER TABLE {} ADD COLUMN {} {}", t, known_column(random), type);
    case 17:
      return fmt::format("ALTER TABLE {} RENAME COLUMN {} TO {}", t, c, known_column(random));
    case 18:
      return fmt::format("CREATE TABLE {} AS SELECT * FROM {}", name, t);
    case 19:
      return fmt::format(
          "CREATE TABLE copied AS SELECT *, CAST({} AS {}) AS {} FROM {}; DROP TABLE {}; ALTER TABLE copied RENAME TO {}",
          c, pick(random, 2) == 0 ? "TEXT" : "REAL", known_column(random), t, t, t);
    case 20:
      return fmt::format(
          "UPDATE sqlite_master SET sql = replace(sql, '{}', '{}') WHERE name = '{}'",
          one_of(kSqlTypes, random), type, table);
    case 21: {
      std::string keyed;
      for (const std::string& column : columns) {
        keyed += sql_quoted(column) + " INTEGER, ";
      }
      return fmt::format(
          "CREATE TABLE keyed ({}PRIMARY KEY ({})) WITHOUT ROWID; INSERT OR IGNORE INTO keyed SELECT * "
          "FROM {}; DROP TABLE {}; ALTER TABLE keyed RENAME TO {}",
          keyed, c, t, t, t);
    }
    case 22:
      return fmt::format("CREATE INDEX i{} ON {} ({})", pick(random, 100), t, c);
    case 23:
      return fmt::format(
          "UPDATE sqlite_master SET rootpage = (SELECT rootpage FROM sqlite_master WHERE name = '{}') "
          "WHERE name = '{}'",
          one_of(tables, random), table);
    // What a file says as program.
    case 24:
      return fmt::format("ALTER TABLE {} RENAME TO seen; CREATE VIEW {} AS SELECT * FROM seen", t,
                         t);
    case 25:
      return fmt::format(
          "DROP TABLE {}; CREATE VIEW {} AS WITH RECURSIVE r({}) AS (SELECT 1 UNION ALL SELECT {} + 1 "
          "FROM r) SELECT * FROM r",
          t, t, c, c);
    case 26:
      return fmt::format(
          "ALTER TABLE {} ADD COLUMN {} GENERATED ALWAYS AS (hex(zeroblob(9000))) VIRTUAL", t,
          known_column(random));
    case 27:
      return fmt::format("DROP TABLE {}; CREATE VIRTUAL TABLE {} USING fts5(start, value)", t, t);
    default:
      return fmt::format("CREATE TRIGGER g{} AFTER UPDATE ON {} BEGIN DELETE FROM {}; END",
                         pick(random, 100), t, t);
  }
}

// Bytes of a page after the first one, most often of its header and its pointers to cells.
void damage_page(std::string& bytes, Random& random) {
  constexpr std::size_t kPage = 512;
  const std::size_t num_pages = bytes.size() / kPage;
  if (num_pages < 2) {
    return;
  }
  const std::size_t start = kPage * (1 + pick(random, num_pages - 1));
  for (std::size_t i = 1 + pick(random, 4); i > 0; --i) {
    const std::size_t at = start + pick(random, pick(random, 2) == 0 ? 24 : kPage);
    bytes[at] =
        static_cast<char>(pick(random, 2) == 0 ? random() : bytes[at] ^ (1 << pick(random, 8)));
  }
}

}  // namespace

std::optional<std::string> changed_sqlite(std::string_view bytes, std::size_t most_bytes,
                                          Random& random) {
  Database database(bytes, most_bytes);
  const std::size_t wanted = 1 + pick(random, 3);
  std::size_t done = 0;
  for (int tries = 0; tries < 12 && done < wanted; ++tries) {
    const std::vector<std::string> tables = database.tables();
    if (tables.empty()) {
      return std::nullopt;
    }
    const std::string& table = one_of(tables, random);
    const std::vector<std::string> columns = database.columns(table);
    if (!columns.empty()) {
      done += database.run_whole(change_of(table, columns, tables, random)) ? 1 : 0;
    }
  }
  if (pick(random, 20) == 0) {
    database.run("VACUUM");  // pages that are free hold what is read by accident alone
  }
  std::string changed = database.bytes();
  if (pick(random, 40) == 0) {
    damage_page(changed, random);
  } else if (done == 0) {
    return std::nullopt;
  }
  return changed.empty() || changed.size() > most_bytes ? std::nullopt
                                                        : std::optional(std::move(changed));
}

std::optional<std::string> grown_sqlite(std::string_view bytes, std::size_t wanted_bytes,
                                        Random& random) {
  Database database(bytes, 2 * wanted_bytes);
  constexpr std::size_t kRowBytes = 40;  // roughly
  std::size_t num_rows = 1;
  for (const std::string& table : database.tables()) {
    for (const std::string& count : database.texts("SELECT count(1) FROM " + sql_quoted(table))) {
      num_rows += std::strtoull(count.c_str(), nullptr, 10);
    }
  }
  const std::size_t copies = wanted_bytes / (num_rows * kRowBytes) + 1;
  bool is_grown = false;
  for (const std::string& table : database.tables()) {
    const std::vector<std::string> columns = database.columns(table);
    if (columns.empty()) {
      continue;
    }
    const std::string varied = pick(random, 2) == 0 ? one_of(columns, random) : "";
    std::string names;
    std::string values;
    for (const std::string& column : columns) {
      const std::string c = sql_quoted(column);
      names += (names.empty() ? "" : ", ") + c;
      values += values.empty() ? "" : ", ";
      if (column == "start" || column == "end") {
        values += fmt::format("{} + n * 1000000", c);
      } else if (column == "correlationId" || column == "graphNodeId" || column == "id") {
        values += fmt::format("{} + n * 10000", c);
      } else if (column == "value" || column == "text") {
        values += column == varied ? fmt::format("{} || n", c) : c;
      } else {
        values += column == varied ? fmt::format("{} + n", c) : c;
      }
    }
    is_grown |= database.run(
        fmt::format("WITH RECURSIVE i(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM i WHERE n < {}) "
                    "INSERT OR IGNORE INTO {} ({}) SELECT {} FROM {}, i",
                    copies, sql_quoted(table), names, values, sql_quoted(table)));
  }
  return is_grown ? std::optional(database.bytes()) : std::nullopt;
}

}  // namespace gpuwhy
