// SPDX-License-Identifier: Apache-2.0
//
// History queries on a ClickHouse server.
//
// A statement contains only numbers: runs are selected by key, and names are looked up afterwards,
// for the rows that are shown.
//
// Which rows count is recorded in `ranks` (fleet/history/clickhouse_schema.cc), with their number
// and check sum. Each result has both of the rows it is made of. Rows as they are stored are tried
// first; where they are not the right ones, FINAL merges rows that were stored twice, and the list
// of summaries leaves out those that no longer count. That may still reveal a lagging replica: the
// query is repeated for a while, and then the result carries a note. Otherwise a query right after
// an acknowledged insert could be answered from part of the ranks and look complete.
//
// Sums are requested as billions and rest, because ClickHouse's integers overflow silently.
#include <algorithm>
#include <chrono>
#include <thread>

#include <fmt/format.h>

#include "fleet/history/history.h"
#include "fleet/history/history_queries.h"

namespace gpuwhy {
namespace {

using Rows = std::vector<std::vector<std::string>>;

// A statement is limited to 256 KiB (max_query_size), and a run takes up to 60 bytes of it.
constexpr std::size_t kRunsAtOnce = 2000;
constexpr std::size_t kNamesAtOnce = 5000;
constexpr auto kLagPatience = std::chrono::seconds(10);

constexpr std::int64_t kLastSecond = 253'402'300'799;  // of the year 9999
constexpr std::uint64_t kMostBins = 488;               // of durations that an int64 can hold

Error wrong_number(const char* what) {
  return {ErrorKind::kInput, fmt::format("the server answered with {}", what)};
}

std::int64_t signed_number(const std::string& text) {
  const std::uint64_t number = server_number(text);
  if (number > INT64_MAX) {
    throw wrong_number("a number that is too large");
  }
  return static_cast<std::int64_t>(number);
}

std::int64_t second_of(const std::string& text) {
  const std::int64_t second = signed_number(text);
  if (second > kLastSecond) {
    throw wrong_number("a time after the year 9999");
  }
  return second;
}

WideSum wide(const std::string& billions, const std::string& rest) {
  WideSum sum;
  sum.add_parts(signed_number(billions), signed_number(rest));
  return sum;
}

using RunsQuery = std::string (HistoryQueries::*)(std::span<const KnownRun>, RowChoice) const;

// The sums of a row of the server, which begin in column `first`: two columns each.
template <typename Columns, typename Wide>
void read_sums(const std::vector<std::string>& row, std::size_t first, const Columns& columns,
               Wide& sums) {
  for (const auto& column : columns) {
    sums.*column.sum = wide(row[first], row[first + 1]);
    first += 2;
  }
}

class ServerHistory : public HistorySource {
 public:
  explicit ServerHistory(ClickHouse& server) : server_(server), queries_(server.database()) {}

  std::vector<KnownRun> runs(const RunFilter& filter) override;
  std::vector<WideKernelSums> kernel_sums(std::span<const KnownRun> runs) override;
  std::vector<WideStageSums> stage_sums(std::span<const KnownRun> runs) override;
  std::vector<WidePartSums> part_sums(std::span<const KnownRun> runs) override;
  std::vector<RankStageTimes> rank_stages(const KnownRun& run) override;
  std::map<std::int64_t, RankSite> places(const KnownRun& run,
                                          const std::set<std::int64_t>& ranks) override;
  std::map<std::uint64_t, std::string> names(const std::set<std::uint64_t>& keys) override;

 private:
  Rows ask(const std::string& sql, std::size_t num_columns) {
    return tab_separated(server_.ask(sql), num_columns);
  }

  // The result that is made of `expected` rows; column `counted` is their number, the last one
  // their check sum.
  template <typename Sql>
  Rows ask_whole(const Sql& sql, std::size_t num_columns, std::size_t counted,
                 const RowCheck& expected);
  static RowCheck check_of(const Rows& rows, std::size_t counted);
  // Visits the rows of a query of these runs, in pieces: the list of keys is part of its text.
  template <typename Visit>
  void each_row(std::span<const KnownRun> runs, RunsQuery query, std::size_t num_columns,
                std::size_t counted, RowCheck (*check)(const KnownRun&), Visit&& visit);

  ClickHouse& server_;
  HistoryQueries queries_;
};

RowCheck ServerHistory::check_of(const Rows& rows, std::size_t counted) {
  RowCheck check;
  for (const auto& row : rows) {
    check.add(server_number(row[counted]), server_number(row.back()));
  }
  return check;
}

template <typename Sql>
Rows ServerHistory::ask_whole(const Sql& sql, std::size_t num_columns, std::size_t counted,
                              const RowCheck& expected) {
  Rows rows = ask(sql(RowChoice::kStored), num_columns);
  if (check_of(rows, counted) == expected) {
    return rows;
  }
  const auto deadline = std::chrono::steady_clock::now() + kLagPatience;
  while (true) {
    rows = ask(sql(RowChoice::kCounted), num_columns);
    const RowCheck got = check_of(rows, counted);
    if (got == expected) {
      return rows;
    }
    if (std::chrono::steady_clock::now() >= deadline) {
      note(
          fmt::format("incomplete: made of {} of {} rows; a replica lags behind, or the server has "
                      "dropped rows by age (fleet init --keep-days)",
                      got.rows, expected.rows));
      return rows;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
  }
}

std::vector<KnownRun> ServerHistory::runs(const RunFilter& filter) {
  std::map<std::uint64_t, KnownRun> last;
  // Ranks of a run may start on two days; the earliest counts.
  RunFilter wider = filter;
  wider.since_day = std::max<std::int64_t>(filter.since_day - 2, 0);
  for (const auto& row : ask(queries_.runs(wider), 18)) {
    KnownRun run;
    run.run_key = server_number(row[0]);
    run.attempt = signed_number(row[1]);
    run.ranks = signed_number(row[2]);
    run.run_id = row[3];
    run.num_ranks = signed_number(row[4]);
    run.model = row[5];
    run.gpu = row[6];
    run.engine = row[7];
    run.engine_version = row[8];
    run.started_unix_s = second_of(row[9]);
    run.day = run.started_unix_s / 86400;
    run.kernel_rows = server_number(row[10]);
    run.stage_rows = server_number(row[11]);
    run.fingerprint = server_number(row[12]);
    run.labels = row[13];
    run.part_rows = server_number(row[14]);
    run.kernel_check = server_number(row[15]);
    run.stage_check = server_number(row[16]);
    run.part_check = server_number(row[17]);
    KnownRun& kept = last[run.run_key];
    if (kept.ranks == 0 || kept.attempt < run.attempt) {
      kept = std::move(run);
    }
  }
  // A seal is valid only for the summaries it was made of.
  for (const auto& row : ask(queries_.seals(wider), 3)) {
    const auto run = last.find(server_number(row[0]));
    if (run != last.end() && run->second.fingerprint == server_number(row[1])) {
      run->second.is_sealed = true;
      run->second.sealed_rows = server_number(row[2]);
    }
  }
  std::vector<KnownRun> all;
  for (auto& [key, run] : last) {
    if (run.day >= filter.since_day) {
      all.push_back(std::move(run));
    }
  }
  sort_runs(all);
  return all;
}

template <typename Visit>
void ServerHistory::each_row(std::span<const KnownRun> runs, RunsQuery query,
                             std::size_t num_columns, std::size_t counted,
                             RowCheck (*check)(const KnownRun&), Visit&& visit) {
  for (std::size_t i = 0; i < runs.size(); i += kRunsAtOnce) {
    const auto some = runs.subspan(i, std::min(kRunsAtOnce, runs.size() - i));
    RowCheck expected;
    for (const KnownRun& run : some) {
      const RowCheck of_run = check(run);
      expected.add(of_run.rows, of_run.sum);
    }
    const auto sql = [&](RowChoice choice) { return (queries_.*query)(some, choice); };
    for (const auto& row : ask_whole(sql, num_columns, counted, expected)) {
      visit(row);
    }
  }
}

std::vector<WideKernelSums> ServerHistory::kernel_sums(std::span<const KnownRun> runs) {
  SumTable<WideKernelSums> sums;
  const auto add = [&](const std::vector<std::string>& row) {
    WideKernelSums cell;
    cell.stage_key = server_number(row[0]);
    cell.kernel_key = server_number(row[1]);
    cell.family_key = server_number(row[2]);
    cell.calls = wide(row[4], row[5]);
    cell.total_ns = wide(row[6], row[7]);
    cell.min_ns = signed_number(row[8]);
    cell.max_ns = signed_number(row[9]);
    if (cell.min_ns > cell.max_ns) {
      throw wrong_number("a shortest time above the longest");
    }
    const std::vector<std::uint64_t> steps = server_numbers(row[10]);
    const std::vector<std::uint64_t> counts = server_numbers(row[11]);
    for (std::size_t i = 0; i < std::min(steps.size(), counts.size()); ++i) {
      if (steps[i] >= kMostBins || counts[i] > INT64_MAX) {
        throw wrong_number("a histogram that cannot be");
      }
      cell.histogram[static_cast<int>(steps[i])] = static_cast<std::int64_t>(counts[i]);
    }
    sums.add(cell);
  };
  std::vector<KnownRun> sealed(runs.begin(), runs.end());
  const auto others = std::stable_partition(sealed.begin(), sealed.end(),
                                            [](const KnownRun& run) { return run.is_sealed; });
  const std::vector<KnownRun> open(others, sealed.end());
  sealed.erase(others, sealed.end());
  // Sealed runs are read from kernel_runs, which has no rank column and is much smaller.
  each_row(
      sealed, &HistoryQueries::sealed_kernels, 13, 3,
      [](const KnownRun& run) {
        return RowCheck{run.sealed_rows, run.sealed_rows * run.fingerprint};
      },
      add);
  each_row(
      open, &HistoryQueries::kernels, 13, 3,
      [](const KnownRun& run) {
        return RowCheck{run.kernel_rows, run.kernel_check};
      },
      add);
  return sums.rows();
}

std::vector<WideStageSums> ServerHistory::stage_sums(std::span<const KnownRun> runs) {
  SumTable<WideStageSums> sums;
  each_row(
      runs, &HistoryQueries::stages, 18, 2,
      [](const KnownRun& run) {
        return RowCheck{run.stage_rows, run.stage_check};
      },
      [&](const std::vector<std::string>& row) {
        WideStageSums sum{server_number(row[0]), server_number(row[1])};
        read_sums(row, 3, kStageSums, sum);
        sums.add(sum);
      });
  return sums.rows();
}

// There is no table of sums over ranks for parts: a rank has a few dozen rows.
std::vector<WidePartSums> ServerHistory::part_sums(std::span<const KnownRun> runs) {
  SumTable<WidePartSums> sums;
  each_row(
      runs, &HistoryQueries::parts, 11, 3,
      [](const KnownRun& run) {
        return RowCheck{run.part_rows, run.part_check};
      },
      [&](const std::vector<std::string>& row) {
        WidePartSums sum{server_number(row[0]), server_number(row[1]), server_number(row[2])};
        sum.ranks.add(signed_number(row[3]));
        read_sums(row, 4, kPartSums, sum);
        sums.add(sum);
      });
  return sums.rows();
}

std::vector<RankStageTimes> ServerHistory::rank_stages(const KnownRun& run) {
  std::vector<RankStageTimes> stages;
  const auto sql = [&](RowChoice choice) { return queries_.rank_stages(run, choice); };
  for (const auto& row : ask_whole(sql, 9, 7, {run.stage_rows, run.stage_check})) {
    stages.push_back({signed_number(row[1]), server_number(row[0]), signed_number(row[2]),
                      signed_number(row[3]), signed_number(row[4]), signed_number(row[5]),
                      signed_number(row[6])});
  }
  return stages;
}

std::map<std::int64_t, RankSite> ServerHistory::places(const KnownRun& run,
                                                       const std::set<std::int64_t>& ranks) {
  std::map<std::int64_t, RankSite> places;
  if (!ranks.empty()) {
    for (const auto& row : ask(queries_.places(run, ranks), 3)) {
      places[signed_number(row[0])] = {row[1], row[2]};
    }
  }
  return places;
}

std::map<std::uint64_t, std::string> ServerHistory::names(const std::set<std::uint64_t>& keys) {
  std::map<std::uint64_t, std::string> names;
  std::vector<std::uint64_t> some;
  for (auto key = keys.begin(); key != keys.end();) {
    some.push_back(*key);
    if (++key == keys.end() || some.size() == kNamesAtOnce) {
      for (const auto& row : ask(queries_.names(some), 2)) {
        names[server_number(row[0])] = row[1];
      }
      some.clear();
    }
  }
  return names;
}

}  // namespace

std::unique_ptr<HistorySource> server_history(ClickHouse& server) {
  return std::make_unique<ServerHistory>(server);
}

}  // namespace gpuwhy
