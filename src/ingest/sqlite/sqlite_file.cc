// SPDX-License-Identifier: Apache-2.0
//
// Opening of SQLite recordings, and parallel scans of their tables at memory speed.
//
// The leaf pages of a table are listed by walking the interior ones, counted by their headers, and
// read in place (sqlite_pages.cc explains why). The schema still comes from SQLite, which also
// handles any table that does not fit these rules.
//
// A recording is opened as immutable: no locks, no journal. That is only correct if nobody writes,
// so a file with a write-ahead log, a journal or a writer's lock is rejected with an explanation.
//
// The touched part of the mapping counts as memory of this process, so a recording of 50 GB would
// appear as 50 GB used, also to a container's limit. So pages behind the reader are released. They
// stay in the system's cache, and reading them again costs one fault per 64 KiB. The system maps
// such stretches as a whole, so for tables with interleaved pages more is mapped than was read.
#include "ingest/sqlite/sqlite_file.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include <fcntl.h>
#include <fmt/format.h>
#include <sqlite3.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/text.h"
#include "base/units.h"

namespace gpuwhy {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kSqliteMagic("SQLite format 3\0", 16);
constexpr const char* kAgain = "copy it again, or run nsys export again";

[[noreturn]] void refuse(const fs::path& path, const std::string& what, const std::string& hint) {
  throw Error(ErrorKind::kInput, fmt::format("{} {}", path.string(), what), hint);
}

// SQLite's writers lock some of these bytes (os_unix.c: pending, reserved, shared).
bool is_being_written(int fd) {
  constexpr off_t kPendingByte = 0x40000000;
  struct flock probe {};
  probe.l_type = F_RDLCK;
  probe.l_whence = SEEK_SET;
  probe.l_start = kPendingByte;
  probe.l_len = 512;
  return ::fcntl(fd, F_GETLK, &probe) == 0 && probe.l_type == F_WRLCK;
}

// The descriptor is closed at once; the mapping stays valid.
std::string_view map_file(const fs::path& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  struct stat facts {};
  if (fd < 0 || ::fstat(fd, &facts) != 0) {
    const int reason = errno;
    if (fd >= 0) {
      ::close(fd);
    }
    refuse(path, fmt::format("cannot be read: {}", std::strerror(reason)), "");
  }
  const auto size = static_cast<std::size_t>(facts.st_size);
  const bool is_file = S_ISREG(facts.st_mode);
  const bool has_writer = is_file && is_being_written(fd);
  void* memory =
      is_file && size > 0 ? ::mmap(nullptr, size, PROT_READ, MAP_SHARED, fd, 0) : MAP_FAILED;
  ::close(fd);
  if (has_writer) {
    refuse(path, "is being written by another program", "wait until the export has ended");
  }
  if (!is_file) {
    refuse(path, S_ISDIR(facts.st_mode) ? "is a directory" : "is not a regular file",
           "give the .sqlite file that nsys export wrote");
  }
  if (size == 0) {
    refuse(path, "is empty", "the export did not finish: run nsys export again");
  }
  if (memory == MAP_FAILED) {
    refuse(path, fmt::format("cannot be mapped: {}", std::strerror(errno)), "");
  }
  return {static_cast<const char*>(memory), size};
}

void check_header(const fs::path& path, std::string_view bytes) {
  if (!bytes.starts_with(kSqliteMagic) || bytes.size() < sqlite_pages::kHeaderSize) {
    refuse(path, "is not a SQLite database", "give the .sqlite file that nsys export wrote");
  }
  const sqlite_pages::Layout layout = sqlite_pages::layout_of(bytes);
  // The page count in the header is valid if it was written with the last change.
  const bool count_holds =
      sqlite_pages::big_endian(bytes, 24, 4) == sqlite_pages::big_endian(bytes, 92, 4);
  const std::uint64_t promised =
      static_cast<std::uint64_t>(sqlite_pages::big_endian(bytes, 28, 4)) * layout.page_size;
  if (count_holds && promised > bytes.size()) {
    refuse(
        path,
        fmt::format("is cut short: {} of {}", format_bytes(bytes.size()), format_bytes(promised)),
        kAgain);
  }
  // SQLite reads the schema when it opens a file, whatever that costs.
  if (!sqlite_pages::records_fit(layout, 1)) {
    refuse(path, "is damaged inside its schema", kAgain);
  }
  std::error_code ignored;
  for (const char* suffix : {"-wal", "-journal"}) {
    const fs::path beside = path.string() + suffix;
    if (fs::exists(beside, ignored) && fs::file_size(beside, ignored) > 0) {
      refuse(path, fmt::format("has an unfinished {} beside it", beside.filename().string()),
             "let the program that writes it end, or run nsys export again");
    }
  }
}

std::string sql_name(const std::string& name) {
  std::string text = "\"";
  for (const char c : name) {
    text += c == '"' ? std::string("\"\"") : std::string(1, c);
  }
  return text + "\"";
}

// SQLite types each value, not each column: a text column may hold a number. Views are valid until
// the next step of the statement.
SqlValue value_at(sqlite3_stmt* statement, int column) {
  SqlValue value;
  switch (sqlite3_column_type(statement, column)) {
    case SQLITE_INTEGER:
      value.kind = SqlValue::Kind::kInteger;
      value.integer = sqlite3_column_int64(statement, column);
      break;
    case SQLITE_FLOAT:
      value.kind = SqlValue::Kind::kReal;
      value.real = sqlite3_column_double(statement, column);
      break;
    case SQLITE_TEXT:
      value.kind = SqlValue::Kind::kText;
      value.text = {reinterpret_cast<const char*>(sqlite3_column_text(statement, column)),
                    static_cast<std::size_t>(sqlite3_column_bytes(statement, column))};
      break;
    case SQLITE_BLOB: {
      value.kind = SqlValue::Kind::kBlob;
      const auto* data = static_cast<const char*>(sqlite3_column_blob(statement, column));
      value.text = {data == nullptr ? "" : data,
                    static_cast<std::size_t>(sqlite3_column_bytes(statement, column))};
      break;
    }
    default:
      break;
  }
  return value;
}

using Statement = std::unique_ptr<sqlite3_stmt, decltype(&sqlite3_finalize)>;

Statement prepare(sqlite3* connection, const fs::path& path, const std::string& sql) {
  sqlite3_stmt* statement = nullptr;
  if (sqlite3_prepare_v2(connection, sql.c_str(), -1, &statement, nullptr) != SQLITE_OK) {
    refuse(path, fmt::format("cannot be read: {}", sqlite3_errmsg(connection)),
           "run nsys export again");
  }
  return {statement, sqlite3_finalize};
}

}  // namespace

SqliteFile::SqliteFile(const fs::path& path) : path_(path), bytes_(map_file(path)) {
  try {
    check_header(path, bytes_);
    std::string uri = "file:";
    for (const char c : fs::absolute(path).string()) {
      uri += c == '?' || c == '#' || c == '%' ? fmt::format("%{:02x}", c) : std::string(1, c);
    }
    uri += "?immutable=1";
    constexpr int kFlags = SQLITE_OPEN_READONLY | SQLITE_OPEN_URI | SQLITE_OPEN_FULLMUTEX;
    if (sqlite3_open_v2(uri.c_str(), &connection_, kFlags, nullptr) != SQLITE_OK) {
      refuse(path, fmt::format("cannot be opened: {}", sqlite3_errmsg(connection_)), "");
    }
    guard_.guard(connection_, bytes_.size());
    sqlite3_exec(connection_, "PRAGMA cell_size_check = ON", nullptr, nullptr, nullptr);
    query("SELECT 1 FROM sqlite_master LIMIT 1", [](const auto&) {});
  } catch (...) {
    sqlite3_close(connection_);
    ::munmap(const_cast<char*>(bytes_.data()), bytes_.size());
    throw;
  }
}

SqliteFile::~SqliteFile() {
  sqlite3_close(connection_);
  ::munmap(const_cast<char*>(bytes_.data()), bytes_.size());
}

// Releases the whole mapping: what another thread is reading comes back with a page fault, which is
// cheaper than tracking who reads where.
void SqliteFile::passed(std::size_t num_bytes) const {
  if (num_passed_.fetch_add(num_bytes, std::memory_order_relaxed) + num_bytes < kMostMapped) {
    return;
  }
  num_passed_.store(0, std::memory_order_relaxed);
  ::madvise(const_cast<char*>(bytes_.data()), bytes_.size(), MADV_DONTNEED);
}

void SqliteFile::release() const {
  passed(kMostMapped);
  sqlite3_db_release_memory(connection_);
}

bool SqliteFile::has_table(const std::string& name) const {
  return !columns_of(name).empty();
}

void SqliteFile::each_column(
    const std::string& table,
    const std::function<void(const std::vector<SqlValue>&)>& column) const {
  // The kind first: SQLite would work out the columns of a view.
  query(
      "SELECT type, substr(sql, 1, 40) FROM sqlite_master WHERE type IN ('table', 'view') AND "
      "lower(name) = lower('" +
          table + "')",
      [&](const auto& row) {
        const bool is_virtual = to_lower(row[1].as_text()).starts_with("create virtual");
        if (is_virtual || row[0].as_text() != "table") {
          refuse(path_,
                 fmt::format("has a {} under the name {}, and only tables are read",
                             is_virtual ? "virtual table" : "view", table),
                 "nsys export writes tables: run it again");
        }
      });
  query("PRAGMA table_xinfo(" + sql_name(table) + ")", [&](const auto& row) {
    if (row[6].as_integer() != 0) {
      refuse(path_,
             fmt::format("has a computed column in table {}, and only stored ones are read", table),
             "nsys export writes none: run it again");
    }
    column(row);
  });
}

std::vector<std::string> SqliteFile::columns_of(const std::string& table) const {
  std::vector<std::string> columns;
  each_column(table, [&](const auto& row) { columns.emplace_back(row[1].as_text()); });
  return columns;
}

void SqliteFile::query(const std::string& sql,
                       const std::function<void(const std::vector<SqlValue>&)>& row) const {
  const Statement statement = prepare(connection_, path_, sql);
  std::vector<SqlValue> values(static_cast<std::size_t>(sqlite3_column_count(statement.get())));
  int state = SQLITE_OK;
  constexpr std::size_t kLeastRow = 4;      // bytes of a record
  constexpr std::size_t kFree = 1'000'000;  // of what SQLite itself says, and small files
  constexpr std::size_t kLongest = 2;       // text in UTF-8 is longer than in UTF-16
  std::size_t num_bytes = 0;
  while ((state = sqlite3_step(statement.get())) == SQLITE_ROW) {
    num_bytes += kLeastRow;
    for (std::size_t i = 0; i < values.size(); ++i) {
      values[i] = value_at(statement.get(), static_cast<int>(i));
      num_bytes += values[i].text.size();
    }
    if (num_bytes > kLongest * bytes_.size() + kFree) {
      refuse(path_, "is damaged: its rows use the same bytes many times", kAgain);
    }
    row(values);
  }
  if (state != SQLITE_DONE) {
    refuse(path_, fmt::format("is damaged: {}", sqlite3_errmsg(connection_)), kAgain);
  }
}

void throw_damaged(const SqliteFile& file, const std::string& table) {
  refuse(file.path(), fmt::format("is damaged inside table {}", table), kAgain);
}

TableScan::TableScan(const SqliteFile& file, const std::string& table,
                     std::vector<std::string> columns)
    : file_(file), table_(table), columns_(std::move(columns)) {
  column_index_.assign(columns_.size(), -1);
  bool is_plain = true;
  int position = 0;
  file.each_column(table, [&](const auto& row) {
    const std::string_view name = row[1].as_text();
    slot_of_.push_back(-1);
    for (std::size_t i = 0; i < columns_.size(); ++i) {
      if (columns_[i] != name) {
        continue;
      }
      column_index_[i] = position;
      slot_of_.back() = static_cast<int>(i);
      const std::string type = to_lower(row[2].as_text());
      if (row[5].as_integer() != 0 && type == "integer") {
        rowid_slot_ = static_cast<int>(i);
      }
      // A default must be filled in where old records are short, and REAL columns store whole
      // numbers as integers: both are left to SQLite.
      const bool is_real = type.find("real") != std::string::npos ||
                           type.find("floa") != std::string::npos ||
                           type.find("doub") != std::string::npos;
      is_plain = is_plain && row[4].is_null() && !is_real;
    }
    ++position;
  });
  if (position == 0) {
    return;
  }
  while (!slot_of_.empty() && slot_of_.back() < 0) {
    slot_of_.pop_back();  // columns after the last requested one are not decoded
  }
  std::uint32_t root_page = 0;
  file.query(
      "SELECT rootpage, sql FROM sqlite_master WHERE type = 'table' AND lower(name) = lower('" +
          table_ + "')",
      [&](const auto& row) {
        root_page = static_cast<std::uint32_t>(row[0].as_integer());
        const std::string sql = to_lower(row[1].as_text());
        is_plain = is_plain && sql.find("without") == std::string::npos;
      });
  constexpr std::uint32_t kUtf8 = 1;
  is_plain = is_plain && root_page != 0 && sqlite_pages::big_endian(file.bytes(), 56, 4) == kUtf8;
  if (is_plain && plan_pages(root_page)) {
    reads_pages_ = true;
    cut_chunks();
  } else {
    plan_sqlite();
  }
}

std::string TableScan::select_text() const {
  std::string sql = "SELECT ";
  for (std::size_t i = 0; i < columns_.size(); ++i) {
    sql += i == 0 ? "" : ", ";
    sql += column_index_[i] < 0 ? "NULL" : sql_name(columns_[i]);
  }
  return sql + " FROM " + sql_name(table_) + " NOT INDEXED";
}

// Row by row: count(*) is one step of SQLite's machine, and no limit on steps ends it.
void TableScan::plan_sqlite() {
  file_.query("SELECT count(1) FROM " + sql_name(table_) + " NOT INDEXED",
              [&](const auto& row) { num_rows_ = static_cast<std::size_t>(row[0].as_integer()); });
  constexpr std::size_t kLeastRow = 4;
  if (num_rows_ > file_.bytes().size() / kLeastRow) {
    throw_damaged(file_, table_);
  }
  chunks_ = {Chunk{}};
}

void TableScan::scan_with_sqlite(const RowFunction& row) const {
  std::size_t index = 0;
  file_.query(select_text(), [&](const auto& values) {
    if (index < num_rows_) {
      row(index++, values.data(), std::ranges::all_of(values, &SqlValue::is_whole_or_null));
    }
  });
  // An index may have other rows than its table: those that were promised are not there.
  if (index < num_rows_) {
    throw_damaged(file_, table_);
  }
}

// Lists the leaf pages in order and counts their records. False if a page violates the format.
bool TableScan::plan_pages(std::uint32_t root_page) {
  const sqlite_pages::Layout layout = sqlite_pages::layout_of(file_.bytes());
  const bool is_whole = sqlite_pages::each_leaf(
      layout, root_page, [&](std::uint32_t page, std::uint32_t num_records) {
        leaf_pages_.push_back(page);
        leaf_rows_.push_back(static_cast<std::uint16_t>(num_records));
        num_rows_ += num_records;
        file_.passed(layout.page_size);
      });
  if (!is_whole) {
    leaf_pages_.clear();
    leaf_rows_.clear();
    num_rows_ = 0;
  }
  return is_whole;
}

// Some tens of chunks per table: enough for all threads, few enough to cost nothing.
void TableScan::cut_chunks() {
  constexpr std::size_t kLeastPages = 64;
  constexpr std::size_t kMostChunks = 64;
  const std::size_t pages =
      std::max(kLeastPages, (leaf_pages_.size() + kMostChunks - 1) / kMostChunks);
  std::size_t row = 0;
  for (std::size_t p = 0; p < leaf_pages_.size(); p += pages) {
    Chunk chunk{p, std::min(pages, leaf_pages_.size() - p), row};
    for (std::size_t i = 0; i < chunk.num_pages; ++i) {
      row += leaf_rows_[p + i];
    }
    chunks_.push_back(chunk);
  }
}

}  // namespace gpuwhy
