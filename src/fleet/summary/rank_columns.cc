// SPDX-License-Identifier: Apache-2.0
//
// Checked access to the large tables of a rank's summary.
//
// Texts are sorted in a file, so their numbers compare like the texts.
#include "fleet/summary/rank_columns.h"

#include <algorithm>
#include <string_view>
#include <tuple>

#include <fmt/format.h>

#include "base/error.h"
#include "fleet/summary/summary_columns.h"

namespace gpuwhy {
namespace {

constexpr std::int64_t kMostSequence = std::int64_t{1} << 62;  // one more still fits

[[noreturn]] void unsorted(std::string_view what) {
  throw Error(ErrorKind::kInput, fmt::format("damaged summary: its {} are not in order", what),
              "make it again from the rank's recording next to it: gpuwhy analyze --out DIR");
}

template <typename Row, typename Key>
void check_order(const std::vector<Row>& rows, std::string_view what, const Key& key) {
  const auto wrong = std::adjacent_find(
      rows.begin(), rows.end(), [&](const Row& a, const Row& b) { return key(a) >= key(b); });
  if (wrong != rows.end()) {
    unsorted(what);
  }
}

}  // namespace

std::vector<KernelIds> read_kernel_ids(const ColumnarFile& file) {
  auto rows = read_rows<KernelIds>(file, "kernel", SIZE_MAX);
  check_order(rows, "kernels",
              [](const KernelIds& row) { return std::tie(row.stage, row.kernel, row.family); });
  return rows;
}

std::vector<CollectiveIds> read_collective_ids(const ColumnarFile& file) {
  auto rows = read_rows<CollectiveIds>(file, "collective", SIZE_MAX);
  if (std::any_of(rows.begin(), rows.end(),
                  [](const CollectiveIds& row) { return row.sequence >= kMostSequence; })) {
    unsorted("collectives");
  }
  check_order(rows, "collectives",
              [](const CollectiveIds& row) { return std::tie(row.communicator, row.sequence); });
  return rows;
}

}  // namespace gpuwhy
