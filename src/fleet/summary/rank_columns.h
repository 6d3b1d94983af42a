// SPDX-License-Identifier: Apache-2.0
//
// The large tables of a rank's file as columns, with texts as numbers of its text table. For
// merging many files; fleet/summary/summary_file.h has the rows.
#pragma once

#include <cstdint>
#include <vector>

#include "fleet/summary/columnar_file.h"
#include "fleet/summary/summary_columns.h"

namespace gpuwhy {

// All columns have the same length, and rows are strictly ordered. Throws kInput.
struct KernelColumns {
  explicit KernelColumns(const ColumnarFile& file);

  std::vector<std::uint32_t> stage;
  std::vector<std::uint32_t> kernel;
  std::vector<std::uint32_t> family;
  std::vector<std::int64_t> calls;
  std::vector<std::int64_t> total_ns;
  std::vector<std::int64_t> min_ns;
  std::vector<std::int64_t> max_ns;
  BinColumns durations;
};

// The same for collectives.
struct CollectiveColumns {
  explicit CollectiveColumns(const ColumnarFile& file);

  std::vector<std::uint32_t> communicator;
  std::vector<std::uint32_t> stage;
  std::vector<std::uint32_t> kernel;
  std::vector<std::int64_t> sequence;
  std::vector<std::int64_t> duration_ns;
};

}  // namespace gpuwhy
