// SPDX-License-Identifier: Apache-2.0
//
// Exactly-once upload of summaries to ClickHouse.
//
// Summaries first become batches on disk and are sent from there; an acknowledged batch is removed.
// After a crash in between it is sent again, which changes nothing
// (fleet/history/clickhouse_schema.cc explains why). A batch contains whole ranks, so the row that
// makes a rank visible always follows all of its rows.
//
// The first client that sees all ranks of a run, with all rows counted, seals it. Two that do so at
// once write the same rows. With lagging replicas nobody may notice; the next push, or one without
// files, will.
#include "fleet/history/push.h"

#include <algorithm>
#include <chrono>
#include <map>
#include <set>
#include <thread>

#include <fmt/format.h>

#include "base/sha256.h"
#include "base/text.h"
#include "fleet/history/history.h"
#include "fleet/history/history_queries.h"
#include "fleet/history/queries.h"
#include "fleet/history/summary_folder.h"
#include "fleet/summary/varint.h"

namespace gpuwhy {
namespace {

namespace fs = std::filesystem;

// Year and month like toYYYYMM(): the partitions.
int month_of(std::int64_t day) {
  const std::chrono::year_month_day date{std::chrono::sys_days(std::chrono::days(day))};
  return static_cast<int>(date.year()) * 100 +
         static_cast<int>(static_cast<unsigned>(date.month()));
}

// The rows of kernel_runs for one run, as RowBinary, and what they are made of.
struct Rollup {
  std::string bytes;
  std::uint64_t rows = 0;
  RowCheck made_of;
};

// The summed kernel rows of a complete run, computed by the server and converted to RowBinary.
Rollup rollup_of(ClickHouse& server, const KnownRun& run, RowChoice choice) {
  Rollup rollup;
  const std::string answer = server.ask(HistoryQueries(server.database()).rollup(run, choice));
  for (const auto& row : tab_separated(answer, 11)) {
    put_number(rollup.bytes, run.run_key, 8);
    put_number(rollup.bytes, run.fingerprint, 8);
    put_number(rollup.bytes, static_cast<std::uint64_t>(run.day), 2);
    for (int i = 0; i < 3; ++i) {
      put_number(rollup.bytes, server_number(row[i]), 8);
    }
    const std::uint64_t ranks = server_number(row[3]);
    put_number(rollup.bytes, ranks, 4);
    for (int i = 4; i < 8; ++i) {
      put_number(rollup.bytes, server_number(row[i]), 8);
    }
    put_numbers(rollup.bytes, server_numbers(row[8]), 2);
    put_numbers(rollup.bytes, server_numbers(row[9]), 8);
    rollup.made_of.add(ranks, server_number(row[10]));
    ++rollup.rows;
  }
  return rollup;
}

// A run is sealed only if the sums cover every kernel row that was pushed, once. Inserts carry a
// hash as token: repeating one has no effect.
enum class Sealing : std::uint8_t { kDone, kRowsMissing, kTooLarge };

Sealing seal(ClickHouse& server, const KnownRun& run) {
  const RowCheck expected{run.kernel_rows, run.kernel_check};
  Rollup rollup = rollup_of(server, run, RowChoice::kStored);
  if (rollup.made_of != expected) {
    rollup = rollup_of(server, run, RowChoice::kCounted);
  }
  if (rollup.made_of != expected) {
    return Sealing::kRowsMissing;
  }
  if (rollup.rows > kMostRowsAtOnce) {
    return Sealing::kTooLarge;
  }
  if (rollup.rows > 0) {
    server.insert("kernel_runs", column_list("kernel_runs"), sha256_hex(rollup.bytes),
                  rollup.bytes);
  }
  std::string row;
  put_number(row, run.run_key, 8);
  put_number(row, run.fingerprint, 8);
  put_number(row, static_cast<std::uint64_t>(run.day), 2);
  put_number(row, static_cast<std::uint64_t>(run.ranks), 4);
  put_number(row, rollup.rows, 8);
  server.insert("seals", column_list("seals"), sha256_hex(row), row);
  return Sealing::kDone;
}

// Throws kInput for a summary that cannot be stored, or that the server would not keep.
void check_fits(const fs::path& file, const StoredSummary& stored, std::uint64_t rows,
                const SpoolRules& rules) {
  if (rows > kMostRowsAtOnce) {
    throw Error(ErrorKind::kInput, fmt::format("{} has {} rows, and a rank may have {}",
                                               file.string(), rows, kMostRowsAtOnce));
  }
  const std::int64_t day = day_of(stored.summary.identity.started_unix_s);
  if (day < rules.first_kept_day) {
    throw Error(
        ErrorKind::kInput,
        fmt::format("{}: {}, and the server drops rows from before {} (--keep-days)", file.string(),
                    day == 0 ? "it does not say when it began" : "of " + date_text(day),
                    date_text(rules.first_kept_day)));
  }
}

constexpr std::size_t kMostUnknown = 3;

// Asks for the version before rows are sent: an answer that is none says nothing about the rows.
void check_server(ClickHouse& server) {
  try {
    server.dialect();
  } catch (const ServerError&) {
    throw;
  } catch (const Error& error) {
    throw ServerError(Refusal::kNotThere, error.what(), error.hint());
  }
}

// Sections are sent in order; the last one makes the ranks visible. Throws kInput only if the batch
// is damaged or its rows can never be stored.
void send_batch(Spool& spool, const fs::path& path, ClickHouse& server, DrainedCounts& counts) {
  const SpooledBatch batch = spool.load(path);
  // A batch may have waited until its rows became too old for the server, which would take them,
  // acknowledge them and drop them.
  const std::int64_t first_kept = first_kept_day(server);
  if (!batch.summaries.empty() && batch.first_day < first_kept) {
    throw Error(ErrorKind::kInput,
                fmt::format("it has rows from before {}, which the server drops (--keep-days)",
                            date_text(first_kept)));
  }
  std::uint64_t rows = 0;
  for (const SpooledSection& section : batch.sections) {
    check_identifier("a batch's table", section.table);
    for (const std::string_view column : split(section.columns, ',')) {
      check_identifier("a batch's column", trim(column));
    }
    server.insert(section.table, section.columns, section.sha256, section.bytes);
    rows += section.table == "names" || section.table == "ranks" ? 0 : section.rows;
  }
  spool.remember_sent(batch.summaries);
  spool.remove(path);
  ++counts.batches;
  counts.ranks += batch.num_ranks;
  counts.rows += rows;
  counts.run_keys.insert(batch.run_keys.begin(), batch.run_keys.end());
}

}  // namespace

SpooledCounts spool_summaries(const std::vector<fs::path>& files, const SpoolRules& rules,
                              Spool& spool) {
  SpooledCounts counts;
  std::map<int, RowBatch> open;  // by month
  const auto close = [&](RowBatch& batch) {
    if (batch.run_keys().empty()) {
      return;
    }
    spool.add(batch);
    batch = {};
    if (rules.on_batch) {
      rules.on_batch();
    }
  };
  for (const fs::path& file : files) {
    try {
      const StoredSummary stored = load_summary(file);
      const std::uint64_t rows = stored.summary.kernels.size() + stored.summary.stages.size() +
                                 stored.summary.parts.size();
      check_fits(file, stored, rows, rules);
      if (!rules.sends_again && spool.was_sent(summary_id(stored))) {
        ++counts.sent_before;
        continue;
      }
      RowBatch& batch = open[month_of(day_of(stored.summary.identity.started_unix_s))];
      if (batch.num_fact_rows() + rows > rules.batch_rows) {
        close(batch);
      }
      with_context("while reading " + file.string(), [&] { batch.add(stored); });
      ++counts.ranks;
      counts.rows += rows;
    } catch (const Error& error) {
      // One damaged file must not hold up all others.
      if (error.kind() != ErrorKind::kInput) {
        throw;
      }
      counts.skipped.emplace_back(error.what());
    }
  }
  for (auto& [month, batch] : open) {
    close(batch);
  }
  return counts;
}

void drain(Spool& spool, ClickHouse& server, DrainedCounts& counts) {
  // One batch that the server cannot take for unknown reasons must not hold up the others; several
  // mean that the server itself is in trouble.
  std::vector<ServerError> kept;
  for (const fs::path& path : spool.waiting()) {
    try {
      send_batch(spool, path, server, counts);
    } catch (const Error& error) {
      std::error_code ignored;
      if (!fs::exists(path, ignored)) {
        continue;  // another process has sent it
      }
      const auto* refused = dynamic_cast<const ServerError*>(&error);
      if (refused != nullptr && refused->refusal() == Refusal::kUnknown) {
        kept.push_back(*refused);
        if (kept.size() == kMostUnknown) {
          break;
        }
        continue;
      }
      if (error.kind() != ErrorKind::kInput) {
        throw;
      }
      counts.set_aside.push_back(
          fmt::format("{}: {}", spool.set_aside(path).string(), error.what()));
    }
  }
  if (!kept.empty()) {
    throw ServerError(kept.front());
  }
}

// Asked before and after the tables are made: what is missing then must be added.
ExistingTables existing_tables(ClickHouse& server) {
  ExistingTables tables;
  for (const auto& row : tab_separated(server.ask(existing_columns_query(server.database())), 2)) {
    tables.columns[row[0]].insert(row[1]);
  }
  if (tables.columns.contains(kVersionTable)) {
    const std::string version = server.ask(fmt::format(
        "SELECT max(version) FROM {}.{} FORMAT TabSeparated", server.database(), kVersionTable));
    for (const auto& row : tab_separated(version, 1)) {
      tables.version = static_cast<int>(std::min<std::uint64_t>(server_number(row[0]), INT32_MAX));
    }
  }
  // Servers without codecs have no TTL, and the oldest ones no definitions to read.
  if (server.dialect().has_column_codecs) {
    tables.keep_days = keep_days_in(server.ask(kernels_definition_query(server.database())));
  }
  return tables;
}

void store_schema_version(ClickHouse& server) {
  std::string row;
  put_number(row, kSchemaVersion, 4);
  server.insert(kVersionTable, column_list(kVersionTable), sha256_hex(row), row);
}

std::int64_t first_kept_day(ClickHouse& server) {
  check_server(server);
  if (!server.dialect().has_column_codecs) {
    return 0;
  }
  const auto days = keep_days_in(server.ask(kernels_definition_query(server.database())));
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  const std::int64_t today = std::chrono::duration_cast<std::chrono::days>(now).count();
  return days ? std::max<std::int64_t>(today - *days + 1, 1) : 0;
}

std::int64_t seal_runs(ClickHouse& server, const std::set<std::uint64_t>& run_keys,
                       std::uint64_t num_sent) {
  // Rows reach the other servers of a cluster a moment after they are acknowledged. What is not
  // there by then is sealed with the next push.
  constexpr int kTries = 20;
  constexpr std::chrono::milliseconds kPause(100);
  std::set<std::uint64_t> sealed;
  for (int i = 0; i < kTries; ++i) {
    bool is_missing = false;
    std::uint64_t num_seen = 0;
    for (const KnownRun& run : server_history(server)->runs({0, run_keys})) {
      num_seen += static_cast<std::uint64_t>(run.ranks);
      if (run.is_complete() && !run.is_sealed && !sealed.contains(run.run_key)) {
        const Sealing sealing = seal(server, run);
        is_missing = is_missing || sealing == Sealing::kRowsMissing;
        if (sealing == Sealing::kDone) {
          sealed.insert(run.run_key);
        }
      }
    }
    if (!is_missing && num_seen >= num_sent) {
      break;
    }
    std::this_thread::sleep_for(kPause);
  }
  return static_cast<std::int64_t>(sealed.size());
}

}  // namespace gpuwhy
