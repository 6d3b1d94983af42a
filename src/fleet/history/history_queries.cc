// SPDX-License-Identifier: Apache-2.0
//
// SQL statements of the history queries.
//
// They use the part of SQL that ClickHouse 18.16 and its latest release share: no WITH of a
// subquery, no window functions, no parameters, no join. Everything that is not fixed text is a
// number.
//
// GLOBAL IN: on a cluster, the list of valid summaries is computed once and sent along; without
// GLOBAL every shard would query every other.
//
// FINAL and the list of summaries cost several times what the sums themselves do. So rows are first
// read as they are stored, and their number and check sum say whether these are the rows that
// count; `ranks` has what both must be.
#include "fleet/history/history_queries.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace gpuwhy {
namespace {

std::string run_keys(std::span<const KnownRun> runs) {
  std::vector<std::uint64_t> keys;
  keys.reserve(runs.size());
  for (const KnownRun& run : runs) {
    keys.push_back(run.run_key);
  }
  return fmt::format("({})", fmt::join(keys, ","));
}

// "((1,0),(2,0))"; a list of one pair would be read as the pair itself, so it is doubled.
template <typename Second>
std::string pairs(std::span<const KnownRun> runs, Second&& second) {
  std::vector<std::string> texts;
  for (const KnownRun& run : runs) {
    texts.push_back(fmt::format("({},{})", run.run_key, second(run)));
  }
  if (texts.size() == 1) {
    texts.push_back(texts[0]);
  }
  return fmt::format("({})", fmt::join(texts, ","));
}

std::string condition(const RunFilter& filter) {
  std::string text = fmt::format("day >= toDate({})", filter.since_day);
  if (!filter.run_keys.empty()) {
    text += fmt::format(" AND run_key IN ({})", fmt::join(filter.run_keys, ","));
  }
  return text;
}

std::string wide_sum(const char* column) {
  return fmt::format("sum(intDiv({0}, 1000000000)), sum({0} % 1000000000)", column);
}

template <typename Columns>
std::string wide_sums(const Columns& columns) {
  std::vector<std::string> sums;
  for (const auto& column : columns) {
    sums.push_back(wide_sum(column.name));
  }
  return fmt::format("{}", fmt::join(sums, ", "));
}

constexpr const char* kHistogram = "(sumMap(hist_steps, hist_counts) AS h).1, h.2";

// `check` is the column whose sum proves which rows these are.
std::string kernel_columns(const char* check) {
  return fmt::format(
      "stage_key, kernel_key, min(family_key), count(), {}, {}, min(min_ns), max(max_ns), {}, "
      "sum({})",
      wide_sum("calls"), wide_sum("total_ns"), kHistogram, check);
}

const char* final_or_not(RowChoice choice) {
  return choice == RowChoice::kCounted ? " FINAL" : "";
}

}  // namespace

std::string HistoryQueries::runs(const RunFilter& filter) const {
  return fmt::format(
      "SELECT run_key, attempt, count(), min(run_id), max(num_ranks), min(model), min(gpu), "
      "min(engine), min(engine_version), min(started_unix_s), sum(kernel_rows), sum(stage_rows), "
      "sum(content), min(labels), sum(part_rows), sum(content * kernel_rows), "
      "sum(content * stage_rows), sum(content * part_rows) FROM {}.ranks FINAL WHERE {} GROUP BY "
      "run_key, attempt FORMAT TabSeparated",
      database_, condition(filter));
}

std::string HistoryQueries::seals(const RunFilter& filter) const {
  return fmt::format(
      "SELECT run_key, fingerprint, max(rows) FROM {}.seals WHERE {} GROUP BY "
      "run_key, fingerprint FORMAT TabSeparated",
      database_, condition(filter));
}

std::string HistoryQueries::rows_of(const char* table, std::span<const KnownRun> runs,
                                    RowChoice choice) const {
  if (choice == RowChoice::kStored) {
    return fmt::format("{}.{} WHERE run_key IN {}", database_, table, run_keys(runs));
  }
  const std::string current = pairs(runs, [](const KnownRun& run) { return run.attempt; });
  return fmt::format(
      "{0}.{1} FINAL WHERE run_key IN {2} AND content GLOBAL IN (SELECT content FROM {0}.ranks FINAL "
      "WHERE (run_key, attempt) IN {3})",
      database_, table, run_keys(runs), current);
}

std::string HistoryQueries::kernels(std::span<const KnownRun> runs, RowChoice choice) const {
  return fmt::format("SELECT {} FROM {} GROUP BY stage_key, kernel_key FORMAT TabSeparated",
                     kernel_columns("content"), rows_of("kernels", runs, choice));
}

// Sums of an older seal of the same run stay in the table, so the fingerprint always chooses.
std::string HistoryQueries::sealed_kernels(std::span<const KnownRun> runs, RowChoice choice) const {
  return fmt::format(
      "SELECT {} FROM {}.kernel_runs{} WHERE run_key IN {} AND (run_key, fingerprint) IN {} GROUP BY "
      "stage_key, kernel_key FORMAT TabSeparated",
      kernel_columns("fingerprint"), database_, final_or_not(choice), run_keys(runs),
      pairs(runs, [](const KnownRun& run) { return run.fingerprint; }));
}

std::string HistoryQueries::stages(std::span<const KnownRun> runs, RowChoice choice) const {
  return fmt::format(
      "SELECT run_key, stage_key, count(), {}, sum(content) FROM {} GROUP BY run_key, stage_key FORMAT "
      "TabSeparated",
      wide_sums(kStageSums), rows_of("stages", runs, choice));
}

std::string HistoryQueries::parts(std::span<const KnownRun> runs, RowChoice choice) const {
  return fmt::format(
      "SELECT pass_key, block_key, part_key, count(), {}, sum(content) FROM {} GROUP BY "
      "pass_key, block_key, part_key FORMAT TabSeparated",
      wide_sums(kPartSums), rows_of("parts", runs, choice));
}

std::string HistoryQueries::rank_stages(const KnownRun& run, RowChoice choice) const {
  return fmt::format(
      "SELECT stage_key, rank, instances, total_ns, kernel_ns, window_ns, buckets_ns[1], 1, content "
      "FROM {} ORDER BY stage_key, rank FORMAT TabSeparated",
      rows_of("stages", std::span(&run, 1), choice));
}

std::string HistoryQueries::places(const KnownRun& run, const std::set<std::int64_t>& ranks) const {
  return fmt::format(
      "SELECT rank, node, gpu FROM {}.ranks FINAL WHERE run_key = {} AND attempt = {} AND rank IN "
      "({}) FORMAT TabSeparated",
      database_, run.run_key, run.attempt, fmt::join(ranks, ","));
}

std::string HistoryQueries::names(std::span<const std::uint64_t> keys) const {
  return fmt::format(
      "SELECT name_key, any(name) FROM {}.names WHERE name_key IN ({}) GROUP BY name_key FORMAT "
      "TabSeparated",
      database_, fmt::join(keys, ","));
}

std::string HistoryQueries::rollup(const KnownRun& run, RowChoice choice) const {
  return fmt::format(
      "SELECT stage_key, kernel_key, family_key, count(), sum(calls), sum(total_ns), min(min_ns), "
      "max(max_ns), {}, sum(content) FROM {} GROUP BY stage_key, kernel_key, family_key ORDER BY "
      "stage_key, kernel_key, family_key FORMAT TabSeparated",
      kHistogram, rows_of("kernels", std::span(&run, 1), choice));
}

}  // namespace gpuwhy
