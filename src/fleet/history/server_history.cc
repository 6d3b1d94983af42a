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
#include <tuple>

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

class ServerHistory : public HistorySource {
 public:
  explicit ServerHistory(ClickHouse& server) : server_(server), queries_(server.database()) {}

  std::vector<KnownRun> runs(const RunFilter& filter) override;
  std::vector<KernelSums> kernel_sums(std::span<const KnownRun> runs) override;
  std::vector<StageSums> stage_sums(std::span<const KnownRun> runs) override;
  std::vector<PartSums> part_sums(std::span<const KnownRun> runs) override;
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
  void add_kernels(std::span<const KnownRun> runs, bool is_sealed, KernelTable& sums);

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

void ServerHistory::add_kernels(std::span<const KnownRun> runs, bool is_sealed, KernelTable& sums) {
  RowCheck expected;
  for (const KnownRun& run : runs) {
    expected.add(is_sealed ? run.sealed_rows : run.kernel_rows,
                 is_sealed ? run.sealed_rows * run.fingerprint : run.kernel_check);
  }
  const auto sql = [&](RowChoice choice) {
    return is_sealed ? queries_.sealed_kernels(runs, choice) : queries_.kernels(runs, choice);
  };
  for (const auto& row : ask_whole(sql, 13, 3, expected)) {
    KernelSums cell;
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
  }
}

std::vector<KernelSums> ServerHistory::kernel_sums(std::span<const KnownRun> runs) {
  KernelTable sums;
  // Sealed runs are read from kernel_runs, which has no rank column and is much smaller.
  for (const bool is_sealed : {true, false}) {
    std::vector<KnownRun> chosen;
    std::copy_if(runs.begin(), runs.end(), std::back_inserter(chosen),
                 [&](const KnownRun& run) { return run.is_sealed == is_sealed; });
    for (std::size_t i = 0; i < chosen.size(); i += kRunsAtOnce) {
      const std::span<const KnownRun> some =
          std::span(chosen).subspan(i, std::min(kRunsAtOnce, chosen.size() - i));
      add_kernels(some, is_sealed, sums);
    }
  }
  return sums.rows();
}

std::vector<StageSums> ServerHistory::stage_sums(std::span<const KnownRun> runs) {
  std::vector<StageSums> sums;
  // A limited number of runs per query: the list of keys is part of its text.
  for (std::size_t i = 0; i < runs.size(); i += kRunsAtOnce) {
    const auto some = runs.subspan(i, std::min(kRunsAtOnce, runs.size() - i));
    RowCheck expected;
    for (const KnownRun& run : some) {
      expected.add(run.stage_rows, run.stage_check);
    }
    const auto sql = [&](RowChoice choice) { return queries_.stages(some, choice); };
    for (const auto& row : ask_whole(sql, 18, 2, expected)) {
      sums.push_back({server_number(row[0]), server_number(row[1]), wide(row[3], row[4]),
                      wide(row[5], row[6]), wide(row[7], row[8]), wide(row[9], row[10]),
                      wide(row[11], row[12]), wide(row[13], row[14]), wide(row[15], row[16])});
    }
  }
  // Sorted as FolderHistory sorts, so that both answer alike.
  std::sort(sums.begin(), sums.end(), [](const StageSums& a, const StageSums& b) {
    return std::pair(a.run_key, a.stage_key) < std::pair(b.run_key, b.stage_key);
  });
  return sums;
}

// There is no table of sums over ranks for parts: a rank has a few dozen rows.
std::vector<PartSums> ServerHistory::part_sums(std::span<const KnownRun> runs) {
  std::map<std::tuple<std::uint64_t, std::uint64_t, std::uint64_t>, PartSums> sums;
  for (std::size_t i = 0; i < runs.size(); i += kRunsAtOnce) {
    const auto some = runs.subspan(i, std::min(kRunsAtOnce, runs.size() - i));
    RowCheck expected;
    for (const KnownRun& run : some) {
      expected.add(run.part_rows, run.part_check);
    }
    const auto sql = [&](RowChoice choice) { return queries_.parts(some, choice); };
    for (const auto& row : ask_whole(sql, 11, 3, expected)) {
      PartSums& sum = sums[{server_number(row[0]), server_number(row[1]), server_number(row[2])}];
      sum.ranks.add(signed_number(row[3]));
      sum.passes.add(wide(row[4], row[5]));
      sum.launches.add(wide(row[6], row[7]));
      sum.total_ns.add(wide(row[8], row[9]));
    }
  }
  std::vector<PartSums> merged;
  for (auto& [key, sum] : sums) {
    std::tie(sum.pass_key, sum.block_key, sum.part_key) = key;
    merged.push_back(sum);
  }
  return merged;
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
