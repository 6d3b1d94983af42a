// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <set>
#include <span>
#include <string>

#include "fleet/history/history.h"

namespace llmprof {

// The statements behind the queries; the same text for every dialect. Columns are read in order by
// fleet/history/server_history.cc.
class HistoryQueries {
 public:
  explicit HistoryQueries(std::string database) : database_(std::move(database)) {}

  std::string runs(const RunFilter& filter) const;
  std::string seals(const RunFilter& filter) const;
  std::string kernels(std::span<const KnownRun> runs) const;
  std::string sealed_kernels(std::span<const KnownRun> runs) const;
  std::string stages(std::span<const KnownRun> runs) const;
  std::string parts(std::span<const KnownRun> runs) const;
  std::string rank_stages(const KnownRun& run) const;
  std::string places(const KnownRun& run, const std::set<std::int64_t>& ranks) const;
  std::string names(std::span<const std::uint64_t> keys) const;

  // The sums of a run's kernels by stage, kernel and family: the rows of kernel_runs.
  std::string rollup(const KnownRun& run) const;

 private:
  std::string rows_that_count(std::span<const KnownRun> runs) const;

  std::string database_;
};

}  // namespace llmprof
