// SPDX-License-Identifier: Apache-2.0
//
// Serialization of a rank's summary.
//
// Ratios are stored as their two parts and histograms as pairs, so that merging needs only integer
// sums.
#include "fleet/summary/summary_file.h"

#include <algorithm>
#include <tuple>

#include <fmt/format.h>

#include "base/error.h"
#include "fleet/summary/columnar_file.h"
#include "fleet/summary/summary_columns.h"
#include "results/duration_histogram.h"

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
                     [](const StageSums& a, const StageSums& b) { return a.stage < b.stage; });
  sort_unless_sorted(summary.kernels, std::less<KernelName>());
  sort_unless_sorted(summary.collectives, [](const CollectiveRow& a, const CollectiveRow& b) {
    return std::tie(a.communicator, a.sequence) < std::tie(b.communicator, b.sequence);
  });
  sort_unless_sorted(summary.groups, [](const GroupRow& a, const GroupRow& b) {
    return std::tie(a.communicator, a.operation) < std::tie(b.communicator, b.operation);
  });
  sort_unless_sorted(summary.parts, [](const PartRow& a, const PartRow& b) {
    return std::tie(a.pass, a.block, a.part) < std::tie(b.pass, b.block, b.part);
  });
}

}  // namespace

void wrong_length(std::string_view column) {
  throw Error(ErrorKind::kInput,
              fmt::format("damaged summary: column {} has the wrong length", column),
              "make it again from the rank's recording next to it: gpuwhy analyze --out DIR");
}

BinColumns::BinColumns(const ColumnarFile& file, const std::string& name, std::string_view counted,
                       std::size_t num_rows)
    : steps_(file.numbers(name + "_step")),
      counts_(file.numbers(fmt::format("{}_{}", name, counted))) {
  const std::vector<std::int64_t> sizes = file.numbers(name + "_size");
  offsets_.resize(num_rows + 1);
  if (sizes.empty()) {
    return;
  }
  if (sizes.size() != num_rows || steps_.size() != counts_.size()) {
    wrong_length(name + "_size");
  }
  std::size_t offset = 0;
  for (std::size_t i = 0; i < num_rows; ++i) {
    if (static_cast<std::uint64_t>(sizes[i]) > steps_.size() - offset) {
      wrong_length(name + "_step");
    }
    offset += static_cast<std::size_t>(sizes[i]);
    offsets_[i + 1] = offset;
  }
  if (std::any_of(steps_.begin(), steps_.end(),
                  [](std::int64_t step) { return step >= kNumDurationBins; })) {
    wrong_length(name + "_step");
  }
}

BinMap BinColumns::at_row(std::size_t row) const {
  BinMap found;
  for (std::size_t at = begin(row); at < end(row); ++at) {
    add_to(found[step(at)], count(at));
  }
  return found;
}

void write_bins(const std::vector<const BinMap*>& rows, const std::string& name,
                std::string_view counted, ColumnarWriter& writer) {
  std::vector<std::int64_t> sizes;
  std::vector<std::int64_t> steps;
  std::vector<std::int64_t> counts;
  for (const BinMap* row : rows) {
    sizes.push_back(static_cast<std::int64_t>(row->size()));
    for (const auto& [step, count] : *row) {
      steps.push_back(step);
      counts.push_back(count);
    }
  }
  writer.numbers(name + "_size", sizes);
  writer.numbers(name + "_step", steps);
  writer.numbers(fmt::format("{}_{}", name, counted), counts);
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
  write_rows(identity, "rank", writer);
  each_table(summary, [&](const char* table, const auto& rows, std::size_t /*most*/) {
    write_rows(rows, table, writer);
  });
  return writer.finish(kRankKind);
}

RankIdentity read_identity(const ColumnarFile& file) {
  std::vector<RankIdentity> identities = read_rows<RankIdentity>(file, "rank", 1);
  if (identities.size() != 1) {
    wrong_length("rank.run_id");
  }
  return std::move(identities[0]);
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
  summary.identity = read_identity(file);
  each_table(summary, [&](const char* table, auto& rows, std::size_t most) {
    rows =
        read_rows<typename std::remove_reference_t<decltype(rows)>::value_type>(file, table, most);
  });
  sort_rows(summary);
  return summary;
}

}  // namespace gpuwhy
