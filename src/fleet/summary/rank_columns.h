// SPDX-License-Identifier: Apache-2.0
//
// The large tables of a rank's file with texts as numbers of its text table. For merging many
// files; fleet/summary/summary_file.h has the rows.
#pragma once

#include <cstdint>
#include <vector>

#include "fleet/summary/columnar_file.h"
#include "results/rank_summary.h"

namespace gpuwhy {

// A kernel; its histogram stays in the file (BinColumns).
struct KernelIds : Durations {
  static constexpr bool kNeedsAll = true;  // columns
  std::uint32_t stage = 0;
  std::uint32_t kernel = 0;
  std::uint32_t family = 0;
};

template <typename F>
void describe(const KernelIds*, F&& f) {
  using T = KernelIds;
  fields(f, kInSummary, "stage", &T::stage, "kernel", &T::kernel, "family", &T::family, "calls",
         &T::calls, "total_ns", &T::total_ns, "min_ns", &T::min_ns, "max_ns", &T::max_ns);
}

struct CollectiveIds {
  static constexpr bool kNeedsAll = true;
  std::uint32_t communicator = 0;
  std::uint32_t stage = 0;
  std::uint32_t kernel = 0;
  std::int64_t sequence = 0;
  std::int64_t duration_ns = 0;
};

template <typename F>
void describe(const CollectiveIds*, F&& f) {
  using T = CollectiveIds;
  fields(f, kInSummary, "communicator", &T::communicator, "stage", &T::stage, "kernel", &T::kernel,
         "sequence", &T::sequence, "duration_ns", &T::duration_ns);
}

// In strict order: no kernel and no collective of a rank counts twice. Throw kInput.
std::vector<KernelIds> read_kernel_ids(const ColumnarFile& file);
std::vector<CollectiveIds> read_collective_ids(const ColumnarFile& file);

}  // namespace gpuwhy
