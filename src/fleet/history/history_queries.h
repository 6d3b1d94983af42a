// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <set>
#include <span>
#include <string>

#include "fleet/history/history.h"

namespace gpuwhy {

// How rows are chosen. All stored rows of the runs are read several times faster than those that
// count, and are the same rows unless a batch was stored twice or a rank has a newer summary. The
// last column tells: see RowCheck.
enum class RowChoice { kStored, kCounted };

// What a result must be made of: the number of its rows, and the sum of their `content` (for sealed
// runs `fingerprint`) modulo 2^64. Rows that are stored twice, missing, or of another summary
// change one of them.
struct RowCheck {
  std::uint64_t rows = 0;
  std::uint64_t sum = 0;

  void add(std::uint64_t more_rows, std::uint64_t more_sum) {
    rows += more_rows;
    sum += more_sum;
  }
  bool operator==(const RowCheck&) const = default;
};

// The statements behind the queries; the same text for every dialect. Columns are read in order by
// fleet/history/server_history.cc.
class HistoryQueries {
 public:
  explicit HistoryQueries(std::string database) : database_(std::move(database)) {}

  std::string runs(const RunFilter& filter) const;
  std::string seals(const RunFilter& filter) const;
  std::string kernels(std::span<const KnownRun> runs, RowChoice choice) const;
  std::string sealed_kernels(std::span<const KnownRun> runs, RowChoice choice) const;
  std::string stages(std::span<const KnownRun> runs, RowChoice choice) const;
  std::string parts(std::span<const KnownRun> runs, RowChoice choice) const;
  std::string rank_stages(const KnownRun& run, RowChoice choice) const;
  std::string places(const KnownRun& run, const std::set<std::int64_t>& ranks) const;
  std::string names(std::span<const std::uint64_t> keys) const;

  // The sums of a run's kernels by stage, kernel and family: the rows of kernel_runs.
  std::string rollup(const KnownRun& run, RowChoice choice) const;

 private:
  // "DATABASE.TABLE FINAL WHERE ..." for rows of the runs.
  std::string rows_of(const char* table, std::span<const KnownRun> runs, RowChoice choice) const;

  std::string database_;
};

}  // namespace gpuwhy
