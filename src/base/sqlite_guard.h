// SPDX-License-Identifier: Apache-2.0
//
// Limits on what a SQLite file may make its reader do.
//
// A file brings its own schema: views, triggers, virtual tables and computed columns are programs
// of its author. None of them is run, no value may be longer than the file, and the number of
// steps of SQLite's machine grows with the file's size.
#pragma once

#include <algorithm>
#include <cstdint>

#include <sqlite3.h>

namespace gpuwhy {

// To be kept as long as the connection it guards.
class SqliteGuard {
 public:
  void guard(sqlite3* connection, std::uint64_t file_bytes) {
    sqlite3_db_config(connection, SQLITE_DBCONFIG_DEFENSIVE, 1, nullptr);
    sqlite3_db_config(connection, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, nullptr);
    sqlite3_db_config(connection, SQLITE_DBCONFIG_ENABLE_VIEW, 0, nullptr);
    sqlite3_db_config(connection, SQLITE_DBCONFIG_ENABLE_TRIGGER, 0, nullptr);
    constexpr std::uint64_t kLeastLength = 1'000'000;
    constexpr std::uint64_t kMostLength = 1'000'000'000;
    sqlite3_limit(connection, SQLITE_LIMIT_LENGTH,
                  static_cast<int>(std::clamp(file_bytes, kLeastLength, kMostLength)));
    sqlite3_limit(connection, SQLITE_LIMIT_ATTACHED, 1);  // VACUUM INTO needs one
    sqlite3_limit(connection, SQLITE_LIMIT_COMPOUND_SELECT, 8);
    sqlite3_limit(connection, SQLITE_LIMIT_EXPR_DEPTH, 64);
    sqlite3_limit(connection, SQLITE_LIMIT_TRIGGER_DEPTH, 1);
    calls_left_ = (kFreeSteps + file_bytes * kStepsPerByte) / kStepsBetween;
    sqlite3_progress_handler(connection, kStepsBetween, count, this);
  }

 private:
  static constexpr int kStepsBetween = 10'000;
  static constexpr std::uint64_t kFreeSteps = 10'000'000;
  static constexpr std::uint64_t kStepsPerByte = 256;

  static int count(void* self) {
    std::uint64_t& left = static_cast<SqliteGuard*>(self)->calls_left_;
    return left == 0 || --left == 0 ? 1 : 0;
  }

  std::uint64_t calls_left_ = 0;
};

}  // namespace gpuwhy
