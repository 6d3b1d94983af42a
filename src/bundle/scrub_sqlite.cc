// SPDX-License-Identifier: Apache-2.0
//
// nsys keeps the environment of every process it can see, as root of the whole machine, each as one
// text with NUL between the variables. Nothing needs them. Other texts are kernel names, ranges and
// what programs printed: those lose what looks like a key.
//
// A row that changes leaves its old bytes in the file, and nsys' own writer does so too: the file
// is written anew from what is left in its tables.
#include "bundle/scrub_sqlite.h"

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <sqlite3.h>

#include "base/error.h"
#include "base/text.h"
#include "bundle/scrub.h"

namespace llmprof {
namespace {

using Database = std::unique_ptr<sqlite3, decltype(&sqlite3_close)>;
using Statement = std::unique_ptr<sqlite3_stmt, decltype(&sqlite3_finalize)>;

struct Change {
  std::int64_t row = 0;
  std::string text;
};

struct TextColumn {
  const char* table;
  const char* column;
};

// Where texts of strangers stand, in the schemas from 2.7 to 3.25.
constexpr TextColumn kTextColumns[] = {
    {"StringIds", "value"},         {"TARGET_INFO_SYSTEM_ENV", "value"},
    {"META_DATA_CAPTURE", "value"}, {"META_DATA_EXPORT", "value"},
    {"EXPORT_META_DATA", "value"},  {"DIAGNOSTIC_EVENT", "text"},
    {"NVTX_EVENTS", "text"},        {"NVTX_EVENTS", "jsonText"},
    {"PROCESSES", "name"},
};

Statement prepare(sqlite3* database, const std::string& sql) {
  sqlite3_stmt* statement = nullptr;
  if (sqlite3_prepare_v2(database, sql.c_str(), -1, &statement, nullptr) != SQLITE_OK) {
    throw Error(ErrorKind::kFailure,
                fmt::format("cannot scrub the export: {}", sqlite3_errmsg(database)));
  }
  return {statement, sqlite3_finalize};
}

// NAME=VALUE, NUL, NAME=VALUE: an environment. Its last entry may stand without a NUL.
bool is_environment(std::string_view text) {
  if (text.find('\0') == std::string_view::npos) {
    return false;
  }
  for (const std::string_view entry : split(text, '\0')) {
    if (!entry.empty() && entry.find('=') == std::string_view::npos) {
      return false;
    }
  }
  return true;
}

bool has_key(std::string_view text) {
  for (const std::string_view entry : split(text, '\0')) {
    if (scrub_text(entry) != entry) {
      return true;
    }
  }
  return false;
}

bool has_column(sqlite3* database, const TextColumn& column) {
  return sqlite3_table_column_metadata(database, nullptr, column.table, column.column, nullptr,
                                       nullptr, nullptr, nullptr, nullptr) == SQLITE_OK;
}

// What must change in a column; true in `found_key` when a key was there.
std::vector<Change> changes_in(sqlite3* database, const TextColumn& column,
                               const std::vector<std::string>& values, bool& found_key) {
  std::vector<Change> changes;
  const Statement read =
      prepare(database, fmt::format("SELECT rowid, {0} FROM {1} WHERE typeof({0}) = 'text'",
                                    column.column, column.table));
  while (sqlite3_step(read.get()) == SQLITE_ROW) {
    const auto* bytes = static_cast<const char*>(sqlite3_column_blob(read.get(), 1));
    const auto size = static_cast<std::size_t>(sqlite3_column_bytes(read.get(), 1));
    const std::string_view text(bytes == nullptr ? "" : bytes, bytes == nullptr ? 0 : size);
    const std::int64_t row = sqlite3_column_int64(read.get(), 0);
    if (is_environment(text)) {
      found_key = found_key || has_key(text);
      changes.push_back({row, "[environment scrubbed]"});
    } else if (const std::string clean = scrub_text(text, values); clean != text) {
      found_key = true;
      changes.push_back({row, clean});
    }
  }
  return changes;
}

void apply(sqlite3* database, const TextColumn& column, const std::vector<Change>& changes) {
  const Statement write = prepare(
      database, fmt::format("UPDATE {} SET {} = ?2 WHERE rowid = ?1", column.table, column.column));
  for (const Change& change : changes) {
    sqlite3_bind_int64(write.get(), 1, change.row);
    sqlite3_bind_text(write.get(), 2, change.text.data(), static_cast<int>(change.text.size()),
                      SQLITE_TRANSIENT);
    sqlite3_step(write.get());
    sqlite3_reset(write.get());
  }
}

void run(sqlite3* database, const std::string& sql) {
  if (sqlite3_exec(database, sql.c_str(), nullptr, nullptr, nullptr) != SQLITE_OK) {
    throw Error(ErrorKind::kFailure,
                fmt::format("cannot scrub the export: {}", sqlite3_errmsg(database)));
  }
}

}  // namespace

bool scrub_sqlite(const std::filesystem::path& sqlite, const std::vector<std::string>& values) {
  sqlite3* opened = nullptr;
  const int failure = sqlite3_open_v2(sqlite.c_str(), &opened, SQLITE_OPEN_READWRITE, nullptr);
  Database database(opened, sqlite3_close);
  if (failure != SQLITE_OK) {
    throw Error(ErrorKind::kFailure, fmt::format("cannot scrub {}", sqlite.string()));
  }
  bool found_key = false;
  run(opened, "PRAGMA journal_mode=MEMORY; BEGIN");
  for (const TextColumn& column : kTextColumns) {
    if (has_column(opened, column)) {
      apply(opened, column, changes_in(opened, column, values, found_key));
    }
  }
  const std::string clean = sqlite.string() + ".clean";
  std::filesystem::remove(clean);
  run(opened, "COMMIT");
  const Statement vacuum = prepare(opened, "VACUUM INTO ?1");
  sqlite3_bind_text(vacuum.get(), 1, clean.data(), static_cast<int>(clean.size()), SQLITE_STATIC);
  if (sqlite3_step(vacuum.get()) != SQLITE_DONE) {
    throw Error(ErrorKind::kFailure,
                fmt::format("cannot write {}: {}", clean, sqlite3_errmsg(opened)));
  }
  std::filesystem::rename(clean, sqlite);
  return found_key;
}

}  // namespace llmprof
