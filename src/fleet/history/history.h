// SPDX-License-Identifier: Apache-2.0
//
// Measurements of many runs, as sums. A folder of summaries and a server provide the same sums, and
// every query is answered from them by the same code (fleet/history/queries.h).
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "fleet/history/clickhouse.h"
#include "results/rank_summary.h"

namespace gpuwhy {

// A sum of many int64 that cannot overflow: one hour of 100,000 GPUs is 3.6e17 ns, and a history
// has many hours.
struct WideSum {
  static constexpr std::int64_t kBillion = 1'000'000'000;
  std::int64_t billions = 0;
  std::int64_t rest = 0;  // below a billion

  void add(std::int64_t value) { add_parts(value / kBillion, value % kBillion); }
  void add_parts(std::int64_t more_billions, std::int64_t more_rest) {
    // A server or a file may hold any number: sums stay at the largest one instead of overflowing.
    rest = saturated_sum(rest, more_rest);
    billions = saturated_sum(saturated_sum(billions, more_billions), rest / kBillion);
    rest %= kBillion;
  }
  void add(const WideSum& other) { add_parts(other.billions, other.rest); }
  double value() const { return static_cast<double>(billions) * 1e9 + static_cast<double>(rest); }
  bool operator==(const WideSum&) const = default;
};
inline void add_to(WideSum& sum, const WideSum& more) {
  sum.add(more);
}

// A run as currently known; of several attempts, the last one.
struct KnownRun {
  std::uint64_t run_key = 0;
  std::int64_t attempt = 0;
  std::string run_id;
  std::int64_t ranks = 0;      // present
  std::int64_t num_ranks = 0;  // expected; 0: unknown
  // If ranks differ, the first in text order.
  std::string model;
  std::string gpu;
  std::string engine;
  std::string engine_version;
  std::string labels;  // fleet/summary/labels.h
  std::int64_t started_unix_s = 0;
  std::int64_t day = 0;
  std::uint64_t kernel_rows = 0;
  std::uint64_t stage_rows = 0;
  std::uint64_t part_rows = 0;
  // The sums of `content` over those rows, modulo 2^64; only a server's.
  std::uint64_t kernel_check = 0;
  std::uint64_t stage_check = 0;
  std::uint64_t part_check = 0;
  std::uint64_t fingerprint = 0;  // of the summaries it is made of
  bool is_sealed = false;         // complete, checked, and summed over its ranks
  std::uint64_t sealed_rows = 0;

  bool is_complete() const { return num_ranks > 0 && ranks >= num_ranks; }
};

struct RunFilter {
  std::int64_t since_day = 0;        // runs that began earlier are ignored
  std::set<std::uint64_t> run_keys;  // empty: all
};

// A kernel in a stage, over all ranks of the selected runs.
struct WideKernelSums : DurationsOf<WideSum> {
  std::uint64_t stage_key = 0;
  std::uint64_t kernel_key = 0;
  std::uint64_t family_key = 0;  // where there are several, the least

  auto key() const { return std::pair(stage_key, kernel_key); }
  void add(const WideKernelSums& other) {
    family_key = std::min(family_key, other.family_key);
    DurationsOf<WideSum>::add(other);
  }
};

// Times of one stage on one rank.
struct RankStageTimes {
  std::int64_t rank = 0;
  std::uint64_t stage_key = 0;
  std::int64_t instances = 0;
  std::int64_t total_ns = 0;
  std::int64_t kernel_ns = 0;
  std::int64_t window_ns = 0;
  std::int64_t compute_ns = 0;
};

// A number of a rank's row that is summed over ranks: its column on a server, and its sum.
template <typename Row, typename Wide>
struct SummedColumn {
  const char* name;
  std::int64_t Row::*of_rank;
  WideSum Wide::*sum;
};

// A stage of one run, over its ranks.
struct WideStageSums {
  std::uint64_t run_key = 0;
  std::uint64_t stage_key = 0;
  WideSum instances = {};
  WideSum total_ns = {};
  WideSum tokens = {};
  WideSum model_flops = {};
  WideSum peak_flops = {};
  WideSum model_bytes = {};
  WideSum peak_bytes = {};

  auto key() const { return std::pair(run_key, stage_key); }
  void add(const WideStageSums& other);
};
inline constexpr std::array<SummedColumn<StageSums, WideStageSums>, 7> kStageSums = {
    {{"instances", &StageSums::instances, &WideStageSums::instances},
     {"total_ns", &StageSums::total_ns, &WideStageSums::total_ns},
     {"tokens", &StageSums::tokens, &WideStageSums::tokens},
     {"model_flops", &StageSums::model_flops, &WideStageSums::model_flops},
     {"peak_flops", &StageSums::peak_flops, &WideStageSums::peak_flops},
     {"model_bytes", &StageSums::model_bytes, &WideStageSums::model_bytes},
     {"peak_bytes", &StageSums::peak_bytes, &WideStageSums::peak_bytes}}};

// A part of the model, over all ranks of the selected runs.
struct WidePartSums {
  std::uint64_t pass_key = 0;
  std::uint64_t block_key = 0;
  std::uint64_t part_key = 0;
  WideSum ranks = {};  // of all runs
  WideSum passes = {};
  WideSum launches = {};
  WideSum total_ns = {};

  auto key() const { return std::tuple(pass_key, block_key, part_key); }
  void add(const WidePartSums& other);
};
inline constexpr std::array<SummedColumn<PartRow, WidePartSums>, 3> kPartSums = {
    {{"passes", &PartRow::passes, &WidePartSums::passes},
     {"launches", &PartRow::launches, &WidePartSums::launches},
     {"total_ns", &PartRow::total_ns, &WidePartSums::total_ns}}};

// Rows by their key, those of one key added.
template <typename Row>
class SumTable {
 public:
  void add(const Row& row) {
    const auto [found, is_new] = sums_.try_emplace(row.key(), row);
    if (!is_new) {
      found->second.add(row);
    }
  }
  std::vector<Row> rows() const {
    std::vector<Row> rows;
    rows.reserve(sums_.size());
    for (const auto& [key, sum] : sums_) {
      rows.push_back(sum);
    }
    return rows;
  }

 private:
  std::map<decltype(std::declval<Row>().key()), Row> sums_;
};

// Where a rank ran.
struct RankSite {
  std::string node;
  std::string gpu;
};

// Source of history: the queries are the same for a folder and a server.
class HistorySource {
 public:
  virtual ~HistorySource() = default;

  // Ordered by start, then name.
  virtual std::vector<KnownRun> runs(const RunFilter& filter) = 0;

  // Ordered by stage and kernel.
  virtual std::vector<WideKernelSums> kernel_sums(std::span<const KnownRun> runs) = 0;

  // Ordered by run and stage.
  virtual std::vector<WideStageSums> stage_sums(std::span<const KnownRun> runs) = 0;

  // Ordered by pass, block and part.
  virtual std::vector<WidePartSums> part_sums(std::span<const KnownRun> runs) = 0;

  // Ordered by stage and rank.
  virtual std::vector<RankStageTimes> rank_stages(const KnownRun& run) = 0;

  virtual std::map<std::int64_t, RankSite> places(const KnownRun& run,
                                                  const std::set<std::int64_t>& ranks) = 0;
  virtual std::map<std::uint64_t, std::string> names(const std::set<std::uint64_t>& keys) = 0;

  // Sentences on possible gaps in a result.
  const std::vector<std::string>& notes() const { return notes_; }

 protected:
  void note(std::string sentence) { notes_.push_back(std::move(sentence)); }

 private:
  std::vector<std::string> notes_;
};

// Summaries in a folder, at any depth. Unreadable files become notes.
std::unique_ptr<HistorySource> folder_history(const std::filesystem::path& folder);

// The summaries of a folder that count, by run: of each rank one, by the same rule as in queries.
struct CountedRun {
  std::uint64_t run_key = 0;
  std::string run_id;
  std::vector<std::filesystem::path> files;  // by rank
};
struct CountedFiles {
  std::vector<CountedRun> runs;
  std::vector<std::string> notes;  // on files that do not count
};
CountedFiles files_that_count(const std::filesystem::path& folder);

// The tables created by `gpuwhy fleet init`. `server` must outlive the result.
std::unique_ptr<HistorySource> server_history(ClickHouse& server);

// By start, then name.
void sort_runs(std::vector<KnownRun>& runs);

}  // namespace gpuwhy
