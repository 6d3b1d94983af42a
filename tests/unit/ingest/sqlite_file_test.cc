// SPDX-License-Identifier: Apache-2.0
//
// Pages read by us and rows stepped by SQLite must be the same, for every table of every recording
// there is.
#include "ingest/sqlite/sqlite_file.h"

#include <csignal>
#include <fstream>
#include <iterator>
#include <random>
#include <string>

#include <sqlite3.h>
#include <sys/wait.h>
#include <unistd.h>

#include "folders.h"
#include "made_sqlite.h"
#include "temporary.h"
#include "testing.h"

namespace gpuwhy {
namespace {

namespace fs = std::filesystem;

std::string text_of(const SqlValue& value) {
  switch (value.kind) {
    case SqlValue::Kind::kNull:
      return "null";
    case SqlValue::Kind::kInteger:
      return std::to_string(value.integer);
    case SqlValue::Kind::kReal:
      return "real " + std::to_string(value.real);
    case SqlValue::Kind::kText:
      return "text " + std::string(value.text);
    case SqlValue::Kind::kBlob:
      return "blob " + std::string(value.text);
  }
  return "";
}

std::string row_text(const SqlValue* values, std::size_t count) {
  std::string text;
  for (std::size_t i = 0; i < count; ++i) {
    text += text_of(values[i]) + "|";
  }
  return text;
}

// Number of tables whose pages were read directly.
int compare_all_tables(const fs::path& path) {
  const SqliteFile file(path);
  std::vector<std::string> tables;
  file.query("SELECT name FROM sqlite_master WHERE type = 'table'",
             [&](const auto& row) { tables.emplace_back(row[0].as_text()); });
  int num_direct = 0;
  for (const std::string& table : tables) {
    const std::vector<std::string> columns = file.columns_of(table);
    std::vector<std::string> expected;
    file.query("SELECT * FROM \"" + table + "\"",
               [&](const auto& row) { expected.push_back(row_text(row.data(), row.size())); });
    const TableScan scan(file, table, columns);
    num_direct += scan.reads_pages() ? 1 : 0;
    EXPECT_EQ(scan.num_rows(), expected.size()) << path << " " << table;
    std::size_t next = 0;
    for (std::size_t chunk = 0; chunk < scan.num_chunks(); ++chunk) {
      EXPECT_EQ(scan.first_row(chunk), next);
      scan.scan(chunk, [&](std::size_t index, const SqlValue* values, bool) {
        EXPECT_EQ(index, next);
        if (next < expected.size()) {
          EXPECT_EQ(row_text(values, columns.size()), expected[next]) << path << " " << table;
        }
        ++next;
      });
    }
    EXPECT_EQ(next, expected.size()) << path << " " << table;
  }
  return num_direct;
}

TEST(SqliteFile, EveryTableOfTheCorpusReadsAsSqliteReadsIt) {
  const fs::path corpus = fs::path(corpus_folder()) / "nsys_sqlite";
  if (!fs::exists(corpus)) {
    GTEST_SKIP() << "no corpus at " << corpus;
  }
  int num_files = 0;
  int num_direct = 0;
  for (const auto& entry : fs::directory_iterator(corpus)) {
    num_direct += compare_all_tables(entry.path());
    ++num_files;
  }
  EXPECT_GE(num_files, 20);
  EXPECT_GT(num_direct, num_files * 5) << "the direct way is hardly taken";
}

TEST(SqliteFile, EveryKindOfValueAndPage) {
  const TemporaryDirectory directory;
  for (const int page_size : {512, 4096, 65536}) {
    const fs::path path = directory.path() / ("p" + std::to_string(page_size));
    execute_sql(
        path,
        "PRAGMA page_size = " + std::to_string(page_size) +
            "; CREATE TABLE t(id INTEGER PRIMARY KEY, a INTEGER, b TEXT, c BLOB, d, e REAL);"
            "WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < 3000)"
            "INSERT INTO t SELECT i * 7, CASE i % 9 WHEN 0 THEN 0 WHEN 1 THEN 1 WHEN 2 THEN -5 "
            "WHEN 3 THEN 30000 WHEN 4 THEN -8000000 WHEN 5 THEN 2000000000 WHEN 6 THEN "
            "-100000000000000 WHEN 7 THEN 9223372036854775807 ELSE NULL END, "
            "CASE WHEN i % 500 = 0 THEN printf('%.*c', i * 5, 'x') ELSE 'row' || i END, "
            "CASE i % 3 WHEN 0 THEN zeroblob(i % 50) END, i * 0.5, i FROM n;"
            "DELETE FROM t WHERE id % 11 = 3; ALTER TABLE t ADD COLUMN later;"
            "ALTER TABLE t ADD COLUMN preset INTEGER DEFAULT 5;");
    compare_all_tables(path);
    const SqliteFile file(path);
    EXPECT_TRUE(TableScan(file, "t", {"id", "a", "b", "c", "d", "later"}).reads_pages());
    EXPECT_FALSE(TableScan(file, "t", {"preset"}).reads_pages())
        << "a default is SQLite's to fill in";
  }
}

// What a header says is kept for the next records with the same one: more headers than are kept,
// in turn and again; types of one byte and two; headers that are too long to keep.
TEST(SqliteFile, RecordsWithManyDifferentHeaders) {
  const TemporaryDirectory directory;
  for (const int num_columns : {8, 62, 63, 64, 90}) {
    std::string columns = "text TEXT";
    std::string values = "substr('" + std::string(80, 'y') + "', 1, (i / 3 * 7) % 80)";
    for (int c = 0; c < num_columns; ++c) {
      const std::string n = std::to_string(c);
      columns += ", a" + n + " INTEGER";
      values += ", CASE WHEN i % 3 = 0 AND " + n + " % 2 THEN NULL ELSE ((i + " + n +
                ") % 250 - 125) * (1 << ((i * (2 * " + n + " + 3)) / 5 % 9 * 6)) END";
    }
    const fs::path path = directory.path() / std::to_string(num_columns);
    execute_sql(path, "CREATE TABLE t(" + columns +
                          "); WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE "
                          "i < 3000) INSERT INTO t SELECT " +
                          values + " FROM n;");
    EXPECT_GT(compare_all_tables(path), 0);
  }
}

TEST(SqliteFile, UnusualTablesGoThroughSqlite) {
  const TemporaryDirectory directory;
  const fs::path path = directory.path() / "a.sqlite";
  execute_sql(
      path,
      "CREATE TABLE w(k TEXT PRIMARY KEY, v) WITHOUT ROWID; INSERT INTO w VALUES('b', 1), ('a', 2);"
      "CREATE TABLE empty(a);");
  compare_all_tables(path);
  const fs::path wide = directory.path() / "b.sqlite";
  execute_sql(
      wide, "PRAGMA encoding = 'UTF-16'; CREATE TABLE t(a TEXT); INSERT INTO t VALUES('größer');");
  compare_all_tables(wide);
}

// A computed column is a program of the file's author.
// SQLite would count the rows of the smallest index, and a hostile file's index may be another's.
TEST(SqliteFile, RowsAreCountedInTheTableItself) {
  const TemporaryDirectory directory;
  const fs::path path = directory.path() / "a.sqlite";
  execute_sql(
      path,
      "CREATE TABLE t(a INTEGER DEFAULT 5, b TEXT); CREATE INDEX of_t ON t(a);"
      "INSERT INTO t VALUES (1, 'one'), (2, 'two');"
      "CREATE TABLE big(a INTEGER); CREATE INDEX of_big ON big(a);"
      "WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < 400)"
      "INSERT INTO big SELECT i FROM n; PRAGMA writable_schema = ON;"
      "UPDATE sqlite_master SET rootpage = (SELECT rootpage FROM sqlite_master WHERE name = "
      "'of_big') WHERE name = 'of_t';");
  const SqliteFile file(path);
  const TableScan scan(file, "t", {"a", "b"});
  EXPECT_FALSE(scan.reads_pages()) << "a default is SQLite's to fill in";
  EXPECT_EQ(scan.num_rows(), 2U);
  std::string seen;
  scan.scan(0, [&](std::size_t, const SqlValue* row, bool) { seen += row_text(row, 2); });
  EXPECT_EQ(seen, "1|text one|2|text two|");
}

TEST(SqliteFile, ComputedColumnsAreNotRead) {
  const TemporaryDirectory directory;
  const fs::path path = directory.path() / "a.sqlite";
  execute_sql(path, "CREATE TABLE g(a INTEGER, b INTEGER AS (a * 2)); INSERT INTO g VALUES(21);");
  const SqliteFile file(path);
  expect_error([&] { const TableScan scan(file, "g", {"a"}); }, ErrorKind::kInput,
               HasSubstr("computed column in table g"), _);
}

TEST(SqliteFile, MissingTablesAndColumnsAreEmpty) {
  const TemporaryDirectory directory;
  const fs::path path = directory.path() / "a.sqlite";
  execute_sql(path, "CREATE TABLE t(a); INSERT INTO t VALUES(1);");
  const SqliteFile file(path);
  EXPECT_EQ(TableScan(file, "absent", {"a"}).num_rows(), 0U);
  const TableScan scan(file, "t", {"absent", "a"});
  scan.scan(0, [](std::size_t, const SqlValue* row, bool) {
    EXPECT_TRUE(row[0].is_null());
    EXPECT_EQ(row[1].as_integer(), 1);
  });
}

// Whichever way a table is read: by pages with a known header or any other, or by SQLite.
TEST(SqliteFile, SaysWhichRowsHaveOnlyWholeNumbers) {
  const TemporaryDirectory directory;
  const std::string rows =
      "INSERT INTO t VALUES(1, 2), ('x', 2), (NULL, 0), (1, 2.5), (1, x'00'), (1, 2), (1, 'y' || "
      "hex(zeroblob(9000)));";
  for (const std::string table : {"CREATE TABLE t(a, b);", "CREATE TABLE t(a, b DEFAULT 7);"}) {
    const fs::path path = directory.path() / "a.sqlite";
    fs::remove(path);
    execute_sql(path, table + rows);
    const SqliteFile file(path);
    const TableScan scan(file, "t", {"a", "b"});
    EXPECT_EQ(scan.reads_pages(), table.find("DEFAULT") == std::string::npos);
    std::vector<bool> are_whole;
    scan.scan(0, [&](std::size_t, const SqlValue*, bool whole) { are_whole.push_back(whole); });
    EXPECT_THAT(are_whole, testing::ElementsAre(true, false, true, false, false, true, false));
  }
}

TEST(SqliteFile, SaysWhatAFileIsInstead) {
  const TemporaryDirectory directory;
  const auto refused = [](const fs::path& path, const char* why) {
    expect_error([&] { const SqliteFile file(path); }, ErrorKind::kInput, HasSubstr(why), _);
  };
  refused(directory.path() / "absent", "No such file");
  refused(directory.path(), "is a directory");
  refused(directory.add("empty", ""), "is empty");
  refused(directory.add("text", "hello"), "is not a SQLite database");
  refused(directory.add("header", std::string("SQLite format 3\0", 16)),
          "is not a SQLite database");
  const fs::path path = directory.path() / "a.sqlite";
  execute_sql(path, "CREATE TABLE t(a); INSERT INTO t SELECT zeroblob(100000);");
  fs::resize_file(path, fs::file_size(path) / 2);
  refused(path, "is cut short");
  const fs::path logged = directory.path() / "b.sqlite";
  execute_sql(logged, "CREATE TABLE t(a);");
  directory.add("b.sqlite-wal", "x");
  refused(logged, "unfinished b.sqlite-wal");
}

TEST(SqliteFile, AFileBeingWrittenIsRefused) {
  const TemporaryDirectory directory;
  const fs::path path = directory.path() / "a.sqlite";
  execute_sql(path, "CREATE TABLE t(a);");
  const pid_t writer = ::fork();
  if (writer == 0) {
    sqlite3* connection = nullptr;
    sqlite3_open(path.c_str(), &connection);
    sqlite3_exec(connection, "BEGIN EXCLUSIVE", nullptr, nullptr, nullptr);
    ::pause();
  }
  bool was_refused = false;
  for (int i = 0; i < 5000 && !was_refused; ++i) {
    ::usleep(20'000);
    try {
      const SqliteFile file(path);
    } catch (const Error& error) {
      was_refused = std::string(error.what()).find("is being written") != std::string::npos;
    }
  }
  ::kill(writer, SIGKILL);
  ::waitpid(writer, nullptr, 0);
  EXPECT_TRUE(was_refused);
}

// Damage anywhere must end in rows or in an Error, never in a crash. The sanitizers watch.
TEST(SqliteFile, DamageIsAnErrorNeverACrash) {
  const TemporaryDirectory directory;
  const fs::path path = directory.path() / "a.sqlite";
  execute_sql(path,
              "PRAGMA page_size = 512; CREATE TABLE t(a INTEGER, b TEXT);"
              "WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < 400)"
              "INSERT INTO t SELECT i * 1000003, printf('%.*c', i % 97 * 11, 'x') FROM n;");
  const std::string good = [&] {
    std::ifstream file(path, std::ios::binary);
    return std::string(std::istreambuf_iterator<char>(file), {});
  }();
  std::mt19937 random(7);
  const auto pick = [&](std::size_t n) {
    return std::uniform_int_distribution<std::size_t>(0, n - 1)(random);
  };
  int num_read = 0;
  int num_refused = 0;
  for (int i = 0; i < 3000; ++i) {
    std::string bad = good;
    for (std::size_t n = 1 + pick(8); n > 0; --n) {
      bad[100 + pick(bad.size() - 100)] = static_cast<char>(pick(256));
    }
    try {
      const SqliteFile file(directory.add("bad", bad));
      const TableScan scan(file, "t", {"a", "b"});
      for (std::size_t chunk = 0; chunk < scan.num_chunks(); ++chunk) {
        scan.scan(chunk, [](std::size_t, const SqlValue*, bool) {});
      }
      ++num_read;
    } catch (const Error&) {
      ++num_refused;
    }
  }
  EXPECT_GT(num_read, 0);
  EXPECT_GT(num_refused, 0);
}

}  // namespace
}  // namespace gpuwhy
