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

namespace gpuwhy {

// What a server takes as one atomic block: max_insert_block_size of 18.16 is 1,048,576.
inline constexpr std::uint64_t kMostRowsAtOnce = 1'000'000;

struct SpooledCounts {
  std::uint64_t ranks = 0;
  std::uint64_t rows = 0;
  std::uint64_t sent_before = 0;     // ranks that the server has acknowledged in an earlier push
  std::vector<std::string> skipped;  // files that cannot be sent, each with the reason
};

struct SpoolRules {
  std::uint64_t batch_rows = 200'000;  // most rows of a table, unless one rank has more
  // The server drops rows of earlier days as soon as they come; 0: it keeps all.
  std::int64_t first_kept_day = 0;
  bool sends_again = false;        // also what was acknowledged before
  std::function<void()> on_batch;  // called when a batch is on disk; may be empty
};

// Writes summaries to the spool: whole ranks of one month per batch. A file that is not a summary,
// is too large, or that the server would drop at once, is skipped.
SpooledCounts spool_summaries(const std::vector<std::filesystem::path>& files,
                              const SpoolRules& rules, Spool& spool);

struct DrainedCounts {
  std::uint64_t batches = 0;
  std::uint64_t ranks = 0;
  std::uint64_t rows = 0;
  std::set<std::uint64_t> run_keys;
  std::vector<std::string> set_aside;  // batches that the server rejected, with reasons
};

// Sends waiting batches, oldest first, removes acknowledged ones and adds them to `counts`. Throws
// ServerError if the server stays unreachable or keeps refusing some for a reason that may pass;
// these are kept.
void drain(Spool& spool, ClickHouse& server, DrainedCounts& counts);

// The tables that the server has in its database.
ExistingTables existing_tables(ClickHouse& server);

// Records that the tables have kSchemaVersion.
void store_schema_version(ClickHouse& server);

// The first day whose rows the server does not drop at once; 0: it keeps all. Days since 1970.
std::int64_t first_kept_day(ClickHouse& server);

// Seals those of the runs with these keys (all runs if empty) that are complete and whose rows have
// all arrived. Returns how many. May be repeated. Waits a moment for the `num_sent` ranks that this
// client has just sent.
std::int64_t seal_runs(ClickHouse& server, const std::set<std::uint64_t>& run_keys,
                       std::uint64_t num_sent);

}  // namespace gpuwhy
