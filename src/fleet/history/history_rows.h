// SPDX-License-Identifier: Apache-2.0
//
// Summaries as rows of the history, for a server and a folder alike.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "results/rank_summary.h"

namespace gpuwhy {

// The key of a text: the first 64 bits of its SHA-256. The chance that two of a million names share
// a key is one in thirty million.
std::uint64_t key_of(std::string_view text);

// Days since 1970 in UTC, like ClickHouse's Date; 0 if unknown.
std::int64_t day_of(std::int64_t unix_s);

// A summary, with what decides between several of one rank.
struct StoredSummary {
  RankSummary summary;
  std::uint64_t content = 0;     // key_of() its bytes
  std::int64_t modified_ms = 0;  // of two for one rank and attempt, the later one counts
};

// Of two summaries of a rank, the one with the larger version counts: the later attempt, then the
// later file.
std::uint64_t version_of(const StoredSummary& stored);

// Identifies a summary and its version: two with the same id have the same rows.
std::string summary_id(const StoredSummary& stored);

// Rows of several summaries as RowBinary, table by table. The caller limits the size.
class RowBatch {
 public:
  // Throws kInput for numbers that cannot be stored; then nothing was added.
  void add(const StoredSummary& stored);

  std::uint64_t num_fact_rows() const {
    return tables_[kKernels].rows + tables_[kStages].rows + tables_[kParts].rows;
  }
  const std::set<std::uint64_t>& run_keys() const { return run_keys_; }
  const std::vector<std::string>& summaries() const { return summaries_; }  // summary_id() of each
  std::int64_t first_day() const { return first_day_; }

  struct Section {
    const char* table;
    std::uint64_t rows = 0;
    std::string bytes = {};
  };
  // Those with rows, in the order in which they must be stored: what makes a rank visible comes
  // last.
  std::vector<const Section*> sections() const;

 private:
  std::uint64_t named(const std::string& text);
  void add_rows(const StoredSummary& stored, std::uint64_t run_key);

  std::unordered_map<std::string, std::uint64_t> keys_;
  std::vector<std::string> summaries_;
  std::int64_t first_day_ = 0;
  std::set<std::uint64_t> run_keys_;
  enum Table : std::size_t { kNames, kKernels, kStages, kParts, kRanks };
  std::array<Section, 5> tables_ = {{{"names"}, {"kernels"}, {"stages"}, {"parts"}, {"ranks"}}};
};

}  // namespace gpuwhy
