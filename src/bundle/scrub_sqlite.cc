// SPDX-License-Identifier: Apache-2.0
//
// Removal of secrets from the SQLite exports of nsys.
//
// nsys stores the environment of every process it can see (as root, of the whole machine), each as
// one text with NUL between the variables. They are not needed. Other texts are kernel names,
// ranges and program output: in those only secrets are replaced.
//
// A changed row leaves its old bytes in the file, and so does nsys' own writer. So the file is
// rewritten from its tables, with the same permissions. The journal is on disk: if the process is
// killed, the next scrub rolls back instead of finding a damaged file.
#include "bundle/scrub_sqlite.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <sqlite3.h>

#include "base/error.h"
#include "base/file.h"
#include "base/sqlite_guard.h"
#include "base/temporary_file.h"
#include "base/text.h"
#include "bundle/scrub.h"
#include "bundle/secrets.h"

namespace gpuwhy {
namespace {

using Database = std::unique_ptr<sqlite3, decltype(&sqlite3_close)>;
using Statement = std::unique_ptr<sqlite3_stmt, decltype(&sqlite3_finalize)>;

constexpr std::size_t kLongestVariable = 131'072;  // that a program can be given

struct Table {
  std::string name;
  std::vector<std::string> columns;
  bool has_rowid = true;  // not of tables WITHOUT ROWID, nor where a column is called so
};

struct Change {
  std::int64_t row = 0;
  std::string before;  // in place of the row, where rows have no number
  std::size_t column = 0;
  bool is_blob = false;
  std::string text;
};

Statement prepare(sqlite3* database, const std::string& sql) {
  sqlite3_stmt* statement = nullptr;
  if (sqlite3_prepare_v2(database, sql.c_str(), -1, &statement, nullptr) != SQLITE_OK) {
    throw Error(ErrorKind::kFailure,
                fmt::format("cannot scrub the export: {}", sqlite3_errmsg(database)));
  }
  return {statement, sqlite3_finalize};
}

// NAME=VALUE, NUL, NAME=VALUE: an environment. The last entry may lack its NUL.
bool is_environment(std::string_view text) {
  if (text.find('\0') == std::string_view::npos) {
    return false;
  }
  bool has_entry = false;  // zeros alone are none
  for (const std::string_view entry : split(text, '\0')) {
    const std::size_t equals = entry.find('=');
    if (!entry.empty() && equals == std::string_view::npos) {
      return false;
    }
    has_entry = has_entry || (equals != std::string_view::npos && equals > 0 &&
                              std::all_of(entry.begin(), entry.begin() + equals, is_name_char));
  }
  return has_entry;
}

// A name in double quotes, whatever characters it contains.
std::string sql_name(std::string_view name) {
  std::string text = "\"";
  for (const char c : name) {
    text += c == '"' ? "\"\"" : std::string(1, c);
  }
  return text + "\"";
}

// Texts as UTF-8, whatever the encoding of the database; blobs unchanged.
std::string_view text_in(sqlite3_stmt* row, int column) {
  const void* bytes = sqlite3_column_type(row, column) == SQLITE_BLOB
                          ? sqlite3_column_blob(row, column)
                          : sqlite3_column_text(row, column);
  const auto size = static_cast<std::size_t>(sqlite3_column_bytes(row, column));
  return bytes == nullptr ? std::string_view()
                          : std::string_view(static_cast<const char*>(bytes), size);
}

// Declared column types are ignored: SQLite stores texts in number columns too, and tables vary
// with the version of nsys.
std::vector<Table> tables_of(sqlite3* database) {
  std::vector<Table> tables;
  const Statement read = prepare(
      database,
      "SELECT m.name, c.name FROM sqlite_master m, pragma_table_info(m.name) c "
      "WHERE m.type = 'table' AND m.rootpage > 0 AND m.name NOT LIKE 'sqlite!_%' ESCAPE '!' ORDER BY m.rowid, c.cid");
  while (sqlite3_step(read.get()) == SQLITE_ROW) {
    const std::string_view name = text_in(read.get(), 0);
    if (tables.empty() || tables.back().name != name) {
      tables.push_back({std::string(name), {}});
    }
    tables.back().columns.emplace_back(text_in(read.get(), 1));
  }
  for (Table& table : tables) {
    const std::string sql = "SELECT rowid FROM " + sql_name(table.name);
    sqlite3_stmt* statement = nullptr;
    table.has_rowid =
        sqlite3_prepare_v2(database, sql.c_str(), -1, &statement, nullptr) == SQLITE_OK &&
        std::none_of(table.columns.begin(), table.columns.end(),
                     [](const std::string& column) { return to_lower(column) == "rowid"; });
    sqlite3_finalize(statement);
  }
  return tables;
}

// A text of its own, which may be an environment of one variable: its value is all of the rest.
std::string clean_entry(std::string_view text, const SecretValues& values) {
  const std::string clean =
      text.size() < kLongestVariable ? scrub_argument(std::string(text)) : scrub_text(text);
  return values.are_in(clean) ? values.without(clean) : clean;
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
  scrub.keys.add(secret_values(environment));
}

// `bytes_left` is what texts of this and later tables may have in all.
std::vector<Change> changes_in(sqlite3* database, const Table& table, const SecretValues& values,
                               std::uint64_t& bytes_left, SqliteScrub& scrub) {
  std::vector<Change> changes;
  std::string sql = table.has_rowid ? "SELECT rowid" : "SELECT 0";
  // Reads all rows first and changes them later: SQLite must not be written during a scan.
  for (const std::string& column : table.columns) {
    sql += ", " + sql_name(column);
  }
  const Statement read = prepare(database, sql + " FROM " + sql_name(table.name));
  int state = SQLITE_ROW;
  while ((state = sqlite3_step(read.get())) == SQLITE_ROW) {
    for (std::size_t i = 0; i < table.columns.size(); ++i) {
      const int column = static_cast<int>(i) + 1;
      const int type = sqlite3_column_type(read.get(), column);
      if (type != SQLITE_TEXT && type != SQLITE_BLOB) {
        continue;
      }
      const std::int64_t row = sqlite3_column_int64(read.get(), 0);
      const std::string_view text = text_in(read.get(), column);
      if (text.size() > bytes_left) {
        throw Error(
            ErrorKind::kFailure,
            "cannot scrub the export: it is damaged, its rows use the same bytes many times");
      }
      bytes_left -= text.size();
      const std::string before(table.has_rowid ? std::string_view() : text);
      if (is_environment(text)) {
        take_environment(text, scrub);
        changes.push_back({row, before, i, type == SQLITE_BLOB, "[environment scrubbed]"});
      } else if (std::string clean = clean_entry(text, values); clean != text) {
        add_removed(text, clean, scrub.keys);
        scrub.held_secret = true;
        changes.push_back({row, before, i, type == SQLITE_BLOB, std::move(clean)});
      }
    }
  }
  if (state != SQLITE_DONE) {
    throw Error(ErrorKind::kFailure,
                fmt::format("cannot scrub the export: {}", sqlite3_errmsg(database)));
  }
  scrub.changed_texts += static_cast<std::int64_t>(changes.size());
  return changes;
}

void bind_bytes(sqlite3_stmt* statement, int place, const std::string& bytes, bool is_blob) {
  const auto size = static_cast<int>(bytes.size());
  if (is_blob) {
    sqlite3_bind_blob(statement, place, bytes.data(), size, SQLITE_TRANSIENT);
  } else {
    sqlite3_bind_text(statement, place, bytes.data(), size, SQLITE_TRANSIENT);
  }
}

Statement prepare_change(sqlite3* database, const Table& table, std::size_t column) {
  const std::string name = sql_name(table.columns[column]);
  return prepare(database, fmt::format("UPDATE {} SET {} = ?2 WHERE {} = ?1", sql_name(table.name),
                                       name, table.has_rowid ? "rowid" : name + " COLLATE BINARY"));
}

// Tables without a rowid are updated by the old value of the column.
void apply(sqlite3* database, const Table& table, const std::vector<Change>& changes) {
  std::map<std::size_t, Statement> writers;  // by column
  for (const Change& change : changes) {
    auto writer = writers.find(change.column);
    if (writer == writers.end()) {
      writer = writers.emplace(change.column, prepare_change(database, table, change.column)).first;
    }
    sqlite3_stmt* write = writer->second.get();
    if (table.has_rowid) {
      sqlite3_bind_int64(write, 1, change.row);
    } else {
      bind_bytes(write, 1, change.before, change.is_blob);
    }
    bind_bytes(write, 2, change.text, change.is_blob);
    if (sqlite3_step(write) != SQLITE_DONE) {
      throw Error(ErrorKind::kFailure,
                  fmt::format("cannot scrub the export: {}", sqlite3_errmsg(database)));
    }
    sqlite3_reset(write);
  }
}

// A default, a comment or a view may contain a secret too. They are not rewritten, which could make
// the database unreadable, but they are remembered, so the final byte search finds them.
void take_schema(sqlite3* database, SqliteScrub& scrub) {
  const Statement read = prepare(database, "SELECT sql FROM sqlite_master WHERE sql IS NOT NULL");
  while (sqlite3_step(read.get()) == SQLITE_ROW) {
    const std::string_view text = text_in(read.get(), 0);
    add_removed(text, scrub_text(text), scrub.keys);
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

SqliteScrub scrub_sqlite(const std::filesystem::path& sqlite, const SecretValues& values) {
  sqlite3* opened = nullptr;
  const int failure = sqlite3_open_v2(sqlite.c_str(), &opened, SQLITE_OPEN_READWRITE, nullptr);
  Database database(opened, sqlite3_close);
  if (failure != SQLITE_OK) {
    throw Error(ErrorKind::kFailure, fmt::format("cannot scrub {}", sqlite.string()));
  }
  SqliteGuard guard;
  guard.guard(opened, std::filesystem::file_size(sqlite));
  run(opened, "PRAGMA ignore_check_constraints=ON");
  SqliteScrub scrub;
  // All changes in one transaction, then a copy without free pages replaces the file.
  run(opened, "PRAGMA journal_mode=DELETE; BEGIN");
  // Text in UTF-8 may be longer than the UTF-16 of the file. In a hostile file many rows share one
  // text, and the copy would fill the disk.
  std::uint64_t bytes_left = 2 * std::filesystem::file_size(sqlite) + 1'000'000;
  for (const Table& table : tables_of(opened)) {
    apply(opened, table, changes_in(opened, table, values, bytes_left, scrub));
  }
  take_schema(opened, scrub);
  run(opened, "COMMIT");
  scrub.held_secret = scrub.held_secret || !scrub.keys.empty();
  TemporaryFile clean(sqlite, mode_of(sqlite));
  const DoomedFile journal(clean.name().string() + "-journal");
  write_anew(opened, clean.name());
  clean.put_in_place();
  return scrub;
}

}  // namespace gpuwhy
