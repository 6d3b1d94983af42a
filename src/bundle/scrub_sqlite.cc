// SPDX-License-Identifier: Apache-2.0
//
// nsys keeps the environment of every process it can see, as root of the whole machine, each as one
// text with NUL between the variables. Nothing needs them. Other texts are kernel names, ranges and
// what programs printed: those lose what looks like a key.
//
// A row that changes leaves its old bytes in the file, and nsys' own writer does so too: the file
// is written anew from what is left in its tables. The journal lies on disk: who is killed in the
// middle leaves a file that the next scrub rolls back, not a damaged one.
#include "bundle/scrub_sqlite.h"

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <sqlite3.h>

#include "base/error.h"
#include "base/temporary_file.h"
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
  std::string table;
  std::string column;
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

// A name in double quotes, whatever it holds.
std::string sql_name(std::string_view name) {
  std::string text = "\"";
  for (const char c : name) {
    text += c == '"' ? "\"\"" : std::string(1, c);
  }
  return text + "\"";
}

std::string_view text_in(sqlite3_stmt* row, int column) {
  const auto* bytes = static_cast<const char*>(sqlite3_column_blob(row, column));
  const auto size = static_cast<std::size_t>(sqlite3_column_bytes(row, column));
  return bytes == nullptr ? std::string_view() : std::string_view(bytes, size);
}

// Every column that may hold text: tables come and go with the versions of nsys.
std::vector<TextColumn> text_columns(sqlite3* database) {
  std::vector<TextColumn> columns;
  const Statement read = prepare(
      database,
      "SELECT m.name, c.name FROM sqlite_master m, pragma_table_info(m.name) c "
      "WHERE m.type = 'table' AND m.name NOT LIKE 'sqlite!_%' ESCAPE '!' "
      "AND (c.type = '' OR c.type LIKE '%TEXT%' OR c.type LIKE '%CHAR%' OR c.type LIKE '%BLOB%')");
  while (sqlite3_step(read.get()) == SQLITE_ROW) {
    columns.push_back({std::string(text_in(read.get(), 0)), std::string(text_in(read.get(), 1))});
  }
  return columns;
}

void take_environment(std::string_view text, SqliteScrub& scrub) {
  std::map<std::string, std::string> environment;
  for (const std::string_view entry : split(text, '\0')) {
    const std::size_t equals = entry.find('=');
    if (equals != std::string_view::npos) {
      environment.emplace(entry.substr(0, equals), entry.substr(equals + 1));
    }
    add_removed(entry, scrub_text(entry), scrub.keys);
  }
  for (std::string& value : secret_values(environment)) {
    scrub.keys.push_back(std::move(value));
  }
}

std::vector<Change> changes_in(sqlite3* database, const TextColumn& column,
                               const std::vector<std::string>& values, SqliteScrub& scrub) {
  std::vector<Change> changes;
  const Statement read =
      prepare(database, fmt::format("SELECT rowid, {0} FROM {1} WHERE typeof({0}) = 'text'",
                                    sql_name(column.column), sql_name(column.table)));
  while (sqlite3_step(read.get()) == SQLITE_ROW) {
    const std::string_view text = text_in(read.get(), 1);
    const std::int64_t row = sqlite3_column_int64(read.get(), 0);
    if (is_environment(text)) {
      take_environment(text, scrub);
      changes.push_back({row, "[environment scrubbed]"});
    } else if (const std::string clean = scrub_text(text, values); clean != text) {
      add_removed(text, clean, scrub.keys);
      changes.push_back({row, clean});
    }
  }
  scrub.changed_texts += static_cast<std::int64_t>(changes.size());
  return changes;
}

void apply(sqlite3* database, const TextColumn& column, const std::vector<Change>& changes) {
  const Statement write =
      prepare(database, fmt::format("UPDATE {} SET {} = ?2 WHERE rowid = ?1",
                                    sql_name(column.table), sql_name(column.column)));
  for (const Change& change : changes) {
    sqlite3_bind_int64(write.get(), 1, change.row);
    sqlite3_bind_text(write.get(), 2, change.text.data(), static_cast<int>(change.text.size()),
                      SQLITE_TRANSIENT);
    if (sqlite3_step(write.get()) != SQLITE_DONE) {
      throw Error(ErrorKind::kFailure,
                  fmt::format("cannot scrub the export: {}", sqlite3_errmsg(database)));
    }
    sqlite3_reset(write.get());
  }
}

void run(sqlite3* database, const std::string& sql) {
  if (sqlite3_exec(database, sql.c_str(), nullptr, nullptr, nullptr) != SQLITE_OK) {
    throw Error(ErrorKind::kFailure,
                fmt::format("cannot scrub the export: {}", sqlite3_errmsg(database)));
  }
}

void write_anew(sqlite3* database, const std::string& clean) {
  const Statement vacuum = prepare(database, "VACUUM INTO ?1");
  sqlite3_bind_text(vacuum.get(), 1, clean.data(), static_cast<int>(clean.size()), SQLITE_STATIC);
  if (sqlite3_step(vacuum.get()) != SQLITE_DONE) {
    throw Error(ErrorKind::kFailure,
                fmt::format("cannot write {}: {}", clean, sqlite3_errmsg(database)));
  }
}

}  // namespace

SqliteScrub scrub_sqlite(const std::filesystem::path& sqlite,
                         const std::vector<std::string>& values) {
  sqlite3* opened = nullptr;
  const int failure = sqlite3_open_v2(sqlite.c_str(), &opened, SQLITE_OPEN_READWRITE, nullptr);
  Database database(opened, sqlite3_close);
  if (failure != SQLITE_OK) {
    throw Error(ErrorKind::kFailure, fmt::format("cannot scrub {}", sqlite.string()));
  }
  SqliteScrub scrub;
  run(opened, "PRAGMA journal_mode=DELETE; BEGIN");
  for (const TextColumn& column : text_columns(opened)) {
    apply(opened, column, changes_in(opened, column, values, scrub));
  }
  run(opened, "COMMIT");
  TemporaryFile clean(sqlite);
  const DoomedFile journal(clean.name().string() + "-journal");
  write_anew(opened, clean.name());
  clean.put_in_place();
  return scrub;
}

}  // namespace llmprof
