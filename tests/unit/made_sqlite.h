// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <stdexcept>
#include <string>

#include <sqlite3.h>

namespace gpuwhy {

// Runs SQL on a database, which is made where it is not there. Throws where SQLite refuses.
inline void execute_sql(const std::filesystem::path& path, const std::string& sql) {
  sqlite3* database = nullptr;
  const bool is_done = sqlite3_open(path.c_str(), &database) == SQLITE_OK &&
                       sqlite3_exec(database, sql.c_str(), nullptr, nullptr, nullptr) == SQLITE_OK;
  const std::string message = sqlite3_errmsg(database);
  sqlite3_close(database);
  if (!is_done) {
    throw std::runtime_error(path.string() + ": " + message);
  }
}

}  // namespace gpuwhy
