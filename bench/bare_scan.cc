// SPDX-License-Identifier: Apache-2.0
//
// Speed reference for SQLite exports: SQLite itself stepping over the columns that an analysis
// reads, in one thread, computing nothing. Prints seconds. gpuwhy analyze is measured in the same
// run.
#include <chrono>
#include <cstdio>
#include <string>

#include <sqlite3.h>

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: bare_scan FILE.sqlite\n");
    return 2;
  }
  sqlite3* connection = nullptr;
  const std::string uri = std::string("file:") + argv[1] + "?immutable=1";
  if (sqlite3_open_v2(uri.c_str(), &connection,
                      SQLITE_OPEN_READONLY | SQLITE_OPEN_URI | SQLITE_OPEN_NOMUTEX,
                      nullptr) != SQLITE_OK) {
    return 1;
  }
  sqlite3_exec(connection, "PRAGMA mmap_size = 17179869184", nullptr, nullptr, nullptr);
  const auto start = std::chrono::steady_clock::now();
  long long sum = 0;
  for (const char* sql :
       {"SELECT start, end, deviceId, streamId, correlationId, globalPid, demangledName, gridX, "
        "blockX "
        "FROM CUPTI_ACTIVITY_KIND_KERNEL",
        "SELECT start, end, globalTid, correlationId, nameId FROM CUPTI_ACTIVITY_KIND_RUNTIME",
        "SELECT start, end, eventType, globalTid, textId, domainId FROM NVTX_EVENTS"}) {
    sqlite3_stmt* statement = nullptr;
    if (sqlite3_prepare_v2(connection, sql, -1, &statement, nullptr) != SQLITE_OK) {
      continue;
    }
    const int columns = sqlite3_column_count(statement);
    while (sqlite3_step(statement) == SQLITE_ROW) {
      for (int i = 0; i < columns; ++i) {
        sum += sqlite3_column_int64(statement, i);
      }
    }
    sqlite3_finalize(statement);
  }
  sqlite3_close(connection);
  const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - start;
  std::printf("%.4f\n", taken.count());
  return sum == 42 ? 1 : 0;  // the sum is used, so nothing is optimised away
}
