// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace gpuwhy {

// The version of the tables of a history. A new column leaves it; a changed or removed one raises
// it.
inline constexpr int kHistoryTablesVersion = 1;

struct WrittenHistory {
  std::size_t num_runs = 0;
  std::size_t num_ranks = 0;
  std::size_t num_rows = 0;
  std::vector<std::string> notes;
};

// Writes the summaries in `summaries` as Parquet: OUT/ranks, stages, kernels, collectives, groups
// and parts, each a folder with files of whole ranks of one run. Files of a run that is there
// already are replaced, and other runs stay. Documented in docs/formats.md. Memory is bounded by
// `rows_per_file`, unless one rank has more.
WrittenHistory write_history_tables(const std::filesystem::path& summaries,
                                    const std::filesystem::path& out,
                                    std::size_t rows_per_file = 500'000);

}  // namespace gpuwhy
