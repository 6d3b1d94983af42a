// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "fleet/history/clickhouse.h"
#include "fleet/history/spool.h"

namespace llmprof {

// What a server takes as one atomic block: max_insert_block_size of 18.16 is 1,048,576.
inline constexpr std::uint64_t kMostRowsAtOnce = 1'000'000;

struct SpooledCounts {
  std::uint64_t ranks = 0;
  std::uint64_t rows = 0;
};

// Writes summaries to the spool: whole ranks of one month per batch, at most `batch_rows` rows of a
// table in each unless one rank has more. Throws kInput for a file that is not a summary or too
// large.
SpooledCounts spool_summaries(const std::vector<std::filesystem::path>& files,
                              std::uint64_t batch_rows, Spool& spool);

struct DrainedCounts {
  std::uint64_t batches = 0;
  std::uint64_t ranks = 0;
  std::uint64_t rows = 0;
  std::set<std::uint64_t> run_keys;
  std::vector<std::string> set_aside;  // batches that the server rejected, with reasons
};

// Sends waiting batches, oldest first, and removes acknowledged ones. Throws ServerError if the
// server stays unreachable or keeps refusing some for a reason that may pass; these are kept.
DrainedCounts drain(Spool& spool, ClickHouse& server);

// Seals those of the runs with these keys (all runs if empty) that are complete and whose rows have
// all arrived. Returns how many. May be repeated.
std::int64_t seal_runs(ClickHouse& server, const std::set<std::uint64_t>& run_keys);

}  // namespace llmprof
