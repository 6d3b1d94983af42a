// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "fleet/clickhouse.h"
#include "fleet/spool.h"

namespace llmprof {

// What a server takes as one block, all or nothing: max_insert_block_size of 18.16 is 1,048,576.
inline constexpr std::uint64_t kMostRowsAtOnce = 1'000'000;

struct SpooledCounts {
  std::uint64_t ranks = 0;
  std::uint64_t rows = 0;
};

// Puts summaries into the spool, whole ranks of one month a batch, at most `batch_rows` rows of a
// table in each unless one rank has more. Throws kInput for a file that is no summary or too large.
SpooledCounts spool_summaries(const std::vector<std::filesystem::path>& files,
                              std::uint64_t batch_rows, Spool& spool);

struct DrainedCounts {
  std::uint64_t batches = 0;
  std::uint64_t ranks = 0;
  std::uint64_t rows = 0;
  std::set<std::uint64_t> run_keys;
  std::vector<std::string> set_aside;  // what was wrong with batches that the server will not take
};

// Sends what waits, oldest first, and removes what is acknowledged. Throws ServerError when the
// server is out of patience's reach; what was not sent stays.
DrainedCounts drain(Spool& spool, ClickHouse& server);

// Of the runs with these keys (none: of all), seals those that are complete and whose rows are all
// there. Returns how many it sealed; may be repeated at will.
std::int64_t seal_runs(ClickHouse& server, const std::set<std::uint64_t>& run_keys);

}  // namespace llmprof
