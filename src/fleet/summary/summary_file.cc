// SPDX-License-Identifier: Apache-2.0
//
// Serialization of a rank's summary.
//
// A field is listed once, in summary_columns.h; writer and reader use the same lists and cannot
// disagree. Ratios are stored as their two parts and histograms as pairs, so that merging needs
// only integer sums.
#include "fleet/summary/summary_file.h"

#include <algorithm>
#include <tuple>

#include <fmt/format.h>

#include "base/error.h"
#include "base/saturated_sum.h"
#include "fleet/summary/columnar_file.h"
#include "fleet/summary/summary_columns.h"

namespace gpuwhy {
namespace {

// Files of this program are sorted already, and looking is much cheaper than sorting.
template <typename Row, typename Before>
void sort_unless_sorted(std::vector<Row>& rows, Before before) {
  if (!std::is_sorted(rows.begin(), rows.end(), before)) {
    std::sort(rows.begin(), rows.end(), before);
  }
}

void sort_rows(RankSummary& summary) {
  sort_unless_sorted(summary.stages,
                     [](const StageCell& a, const StageCell& b) { return a.stage < b.stage; });
  sort_unless_sorted(summary.kernels, [](const KernelCell& a, const KernelCell& b) {
    return std::tie(a.stage, a.kernel, a.family) < std::tie(b.stage, b.kernel, b.family);
  });
  sort_unless_sorted(summary.collectives, [](const CollectiveCall& a, const CollectiveCall& b) {
    return std::tie(a.communicator, a.sequence) < std::tie(b.communicator, b.sequence);
  });
  sort_unless_sorted(summary.groups, [](const GroupCell& a, const GroupCell& b) {
    return std::tie(a.communicator, a.operation) < std::tie(b.communicator, b.operation);
  });
  sort_unless_sorted(summary.parts, [](const PartCell& a, const PartCell& b) {
    return std::tie(a.pass, a.block, a.part) < std::tie(b.pass, b.block, b.part);
  });
}

}  // namespace

void wrong_length(std::string_view column) {
  throw Error(ErrorKind::kInput,
              fmt::format("damaged summary: column {} has the wrong length", column),
              "make it again from the rank's recording next to it: gpuwhy analyze --out DIR");
}

StepColumns::StepColumns(const ColumnarFile& file, const StepColumnNames& names,
                         std::size_t num_rows)
    : steps_(file.numbers(names.steps)), counts_(file.numbers(names.counts)) {
  const std::vector<std::int64_t> sizes = file.numbers(names.sizes);
  offsets_.resize(num_rows + 1);
  if (sizes.empty()) {
    return;
  }
  if (sizes.size() != num_rows || steps_.size() != counts_.size()) {
    wrong_length(names.sizes);
  }
  std::size_t offset = 0;
  for (std::size_t i = 0; i < num_rows; ++i) {
    if (static_cast<std::uint64_t>(sizes[i]) > steps_.size() - offset) {
      wrong_length(names.steps);
    }
    offset += static_cast<std::size_t>(sizes[i]);
    offsets_[i + 1] = offset;
  }
  if (std::any_of(steps_.begin(), steps_.end(),
                  [](std::int64_t step) { return step >= kNumDurationBins; })) {
    wrong_length(names.steps);
  }
}

std::map<int, std::int64_t> StepColumns::at_row(std::size_t row) const {
  std::map<int, std::int64_t> found;
  for (std::size_t at = begin(row); at < end(row); ++at) {
    std::int64_t& total = found[step(at)];
    total = saturated_sum(total, count(at));
  }
  return found;
}

void write_steps(const std::vector<const std::map<int, std::int64_t>*>& rows,
                 const StepColumnNames& names, ColumnarWriter& writer) {
  std::vector<std::int64_t> sizes;
  std::vector<std::int64_t> steps;
  std::vector<std::int64_t> counts;
  for (const auto* row : rows) {
    sizes.push_back(static_cast<std::int64_t>(row->size()));
    for (const auto& [step, count] : *row) {
      steps.push_back(step);
      counts.push_back(count);
    }
  }
  writer.numbers(names.sizes, sizes);
  writer.numbers(names.steps, steps);
  writer.numbers(names.counts, counts);
}

std::string bucket_column(std::size_t bucket) {
  return fmt::format("ledger.{}_ns", kBucketNames[bucket]);
}

// Rows are sorted before they are written: equal summaries have equal bytes.
std::string summary_bytes(const RankSummary& given) {
  RankSummary summary = given;
  sort_rows(summary);
  const std::vector<RankIdentity> identity = {summary.identity};  // the writer keeps views of it
  ColumnarWriter writer;
  write_columns(identity, kIdentityFields, writer);
  write_columns(summary.stages, kStageFields, writer);
  write_buckets(summary.stages, writer);
  write_columns(summary.kernels, kKernelFields, writer);
  std::vector<const std::map<int, std::int64_t>*> histograms;
  histograms.reserve(summary.kernels.size());
  for (const KernelCell& cell : summary.kernels) {
    histograms.push_back(&cell.histogram);
  }
  write_steps(histograms, kDurations, writer);
  write_columns(summary.collectives, kCollectiveFields, writer);
  write_columns(summary.groups, kGroupFields, writer);
  write_columns(summary.parts, kPartFields, writer);
  return writer.finish(kRankKind);
}

// Sorted again after reading: files of other writers may have another order.
RankSummary read_summary(std::string_view bytes) {
  const ColumnarFile file(bytes);
  if (file.kind() != kRankKind) {
    throw Error(ErrorKind::kInput,
                fmt::format("a summary of kind '{}'; the summary of one rank is needed",
                            file.kind() == "fleet" ? "fleet" : "unknown"),
                "summaries of ranks are the summary.gpuwhy of their bundles");
  }
  RankSummary summary;
  const auto identities = read_columns<RankIdentity>(file, kIdentityFields);
  if (identities.size() != 1) {
    wrong_length("rank.run_id");
  }
  summary.identity = identities[0];
  summary.stages = read_columns<StageCell>(file, kStageFields);
  read_buckets(file, summary.stages);
  summary.kernels = read_columns<KernelCell>(file, kKernelFields);
  const StepColumns histograms(file, kDurations, summary.kernels.size());
  for (std::size_t i = 0; i < summary.kernels.size(); ++i) {
    summary.kernels[i].histogram = histograms.at_row(i);
  }
  summary.collectives = read_columns<CollectiveCall>(file, kCollectiveFields);
  summary.groups = read_columns<GroupCell>(file, kGroupFields);
  summary.parts = read_columns<PartCell>(file, kPartFields);
  sort_rows(summary);
  return summary;
}

}  // namespace gpuwhy
