// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/sqlite_guard.h"
#include "ingest/sqlite/sqlite_pages.h"

struct sqlite3;

namespace gpuwhy {

// A SQLite database that nobody writes to. Throws kInput with an explanation if the file is
// missing, a directory, empty, truncated, of another format, or currently being written.
class SqliteFile {
 public:
  explicit SqliteFile(const std::filesystem::path& path);
  ~SqliteFile();
  SqliteFile(const SqliteFile&) = delete;
  SqliteFile& operator=(const SqliteFile&) = delete;

  const std::filesystem::path& path() const { return path_; }
  std::string_view bytes() const { return bytes_; }
  // Reports progress, so that already-read pages can be released (MADV_DONTNEED). After every
  // kMostMapped bytes all pages are released: however large the file, little of it counts as this
  // process's memory. Views stay valid. Thread-safe.
  void passed(std::size_t num_bytes) const;
  static constexpr std::size_t kMostMapped = std::size_t{16} << 20;
  // Releases the same and SQLite's cache. A job has as many open files as ranks, and what was read
  // of one must not stay in memory while others are read. Thread-safe.
  void release() const;
  bool has_table(const std::string& name) const;
  // Calls back with cid, name, type, notnull, default, pk and hidden of each column, in table
  // order; never if there is no such table. Throws kInput for a view, a virtual table and a table
  // with computed columns: reading them would run what the file says.
  void each_column(const std::string& table,
                   const std::function<void(const std::vector<SqlValue>&)>& column) const;
  // In table order; empty if there is no such table. Throws as above.
  std::vector<std::string> columns_of(const std::string& table) const;

  // For small tables: runs a query on this connection and calls back for each row. Throws kInput if
  // it has more rows, or more bytes of text, than a file of this size can hold.
  void query(const std::string& sql,
             const std::function<void(const std::vector<SqlValue>&)>& row) const;

  sqlite3* connection() const { return connection_; }

 private:
  std::filesystem::path path_;
  std::string_view bytes_;                          // the whole file, mapped
  mutable std::atomic<std::size_t> num_passed_{0};  // since pages were given back
  SqliteGuard guard_;
  sqlite3* connection_ = nullptr;
};

// All rows of one table in the order of their row ids, split into chunks that threads may read in
// parallel.
//
// Reads SQLite's documented pages directly from the mapped file, several times faster than stepping
// a statement. Anything else (a WITHOUT ROWID table, generated columns, another text encoding, a
// damaged page) goes through SQLite itself, as one chunk; the rows are the same.
class TableScan {
 public:
  // Missing `columns` read as null. A missing table has no rows.
  TableScan(const SqliteFile& file, const std::string& table, std::vector<std::string> columns);

  std::size_t num_rows() const { return num_rows_; }
  std::size_t num_chunks() const { return chunks_.size(); }
  // Index of a chunk's first row among all rows.
  std::size_t first_row(std::size_t chunk) const { return chunks_[chunk].first_row; }
  bool reads_pages() const { return reads_pages_; }

  // Calls row(index among all rows, values of `columns`, whether all of them are whole numbers or
  // null) for each row of the chunk. SQLite lets any column hold text.
  using RowFunction = std::function<void(std::size_t, const SqlValue*, bool)>;
  template <typename Row>
  void scan(std::size_t chunk, Row&& row) const;

 private:
  struct Chunk {
    std::size_t first_page = 0;  // into leaf_pages_
    std::size_t num_pages = 0;
    std::size_t first_row = 0;
  };

  bool plan_pages(std::uint32_t root_page);
  void plan_sqlite();
  void cut_chunks();
  void scan_with_sqlite(const RowFunction& row) const;
  std::string select_text() const;

  const SqliteFile& file_;
  std::string table_;
  std::vector<std::string> columns_;
  std::vector<int> column_index_;  // position in the table; -1: absent
  std::vector<int> slot_of_;       // position in the table -> position in columns_, or -1
  int rowid_slot_ = -1;            // the slot that is the row id itself (INTEGER PRIMARY KEY)
  std::vector<std::uint32_t> leaf_pages_;
  std::vector<std::uint16_t> leaf_rows_;  // of each leaf page
  std::vector<Chunk> chunks_;
  std::size_t num_rows_ = 0;
  bool reads_pages_ = false;
  mutable std::atomic<std::uint64_t> spilled_{0};  // bytes of records that continue elsewhere
};

// Thrown inside scan() if a page turns out to be damaged; never leaves ingest/.
[[noreturn]] void throw_damaged(const SqliteFile& file, const std::string& table);

template <typename Row>
void TableScan::scan(std::size_t chunk, Row&& row) const {
  if (!reads_pages_) {
    scan_with_sqlite(std::forward<Row>(row));
    return;
  }
  const sqlite_pages::Layout layout = sqlite_pages::layout_of(file_.bytes());
  sqlite_pages::RecordReader reader(layout, slot_of_, rowid_slot_, columns_.size(), spilled_);
  const Chunk& mine = chunks_[chunk];
  std::size_t index = mine.first_row;
  for (std::size_t p = mine.first_page; p < mine.first_page + mine.num_pages; ++p) {
    const std::uint32_t page = leaf_pages_[p];
    const std::uint32_t cells = sqlite_pages::num_cells(layout, page);
    for (std::uint32_t i = 0; i < cells; ++i) {
      if (!reader.read(page, i)) {
        throw_damaged(file_, table_);
      }
      row(index++, reader.values(), reader.are_whole());
    }
    file_.passed(layout.page_size);
  }
}

}  // namespace gpuwhy
