// SPDX-License-Identifier: Apache-2.0
//
// A rank's summary as a file and back: which field stands in which column.
//
// A field is named once, in the lists below; writer and reader walk the same lists and cannot
// disagree. Ratios are stored as their two parts and histograms as pairs, so that whoever adds
// files needs no more than integer sums.
#include "fleet/summary_file.h"

#include <algorithm>
#include <tuple>

#include <fmt/format.h>

#include "base/error.h"
#include "fleet/saturated_sum.h"
#include "fleet/summary_columns.h"
#include "fleet/table_file.h"

namespace llmprof {
namespace {

[[noreturn]] void damaged(std::string_view column) {
  throw Error(ErrorKind::kInput,
              fmt::format("damaged summary: column {} has the wrong length", column),
              "the rank's own recording is beside it: llmprof analyze --out DIR makes it anew");
}

template <typename Row, typename Field>
void write_columns(const std::vector<Row>& rows, const Field& fields, TableWriter& writer) {
  std::vector<std::int64_t> numbers;
  std::vector<std::string_view> texts;
  for (const auto& [name, member] : fields.texts) {
    texts.clear();
    for (const Row& row : rows) {
      texts.push_back(row.*member);
    }
    writer.texts(name, texts);
  }
  for (const auto& [name, member] : fields.numbers) {
    numbers.clear();
    for (const Row& row : rows) {
      numbers.push_back(row.*member);
    }
    writer.numbers(name, numbers);
  }
}

template <typename Row, typename Field>
std::vector<Row> read_columns(const TableFile& file, const Field& fields) {
  std::vector<Row> rows;
  // The first column says how many there are; one that a writer did not know is empty.
  const auto fits = [&](std::size_t size, const char* name) {
    if (size != rows.size() && size != 0) {
      damaged(name);
    }
    return size != 0;
  };
  bool is_first = true;
  for (const auto& [name, member] : fields.texts) {
    const std::vector<std::uint32_t> ids = file.text_ids(name);
    if (is_first) {
      rows.resize(ids.size());
      is_first = false;
    }
    if (fits(ids.size(), name)) {
      for (std::size_t i = 0; i < ids.size(); ++i) {
        rows[i].*member = file.texts()[ids[i]];
      }
    }
  }
  for (const auto& [name, member] : fields.numbers) {
    const std::vector<std::int64_t> numbers = file.numbers(name);
    if (fits(numbers.size(), name)) {
      for (std::size_t i = 0; i < numbers.size(); ++i) {
        rows[i].*member = numbers[i];
      }
    }
  }
  return rows;
}

void write_histograms(const std::vector<KernelCell>& cells, TableWriter& writer) {
  std::vector<std::int64_t> sizes;
  std::vector<std::int64_t> steps;
  std::vector<std::int64_t> launches;
  for (const KernelCell& cell : cells) {
    sizes.push_back(static_cast<std::int64_t>(cell.histogram.size()));
    for (const auto& [step, count] : cell.histogram) {
      steps.push_back(step);
      launches.push_back(count);
    }
  }
  writer.numbers(kHistogramSizes, sizes);
  writer.numbers(kHistogramSteps, steps);
  writer.numbers(kHistogramLaunches, launches);
}

void read_histograms(const TableFile& file, std::vector<KernelCell>& cells) {
  const HistogramColumns columns(file, cells.size());
  for (std::size_t i = 0; i < cells.size(); ++i) {
    auto& histogram = cells[i].histogram;
    for (std::size_t at = columns.begin(i); at < columns.end(i); ++at) {
      std::int64_t& launches = histogram[columns.step(at)];
      launches = saturated_sum(launches, columns.count(at));
    }
  }
}

void write_buckets(const std::vector<StageCell>& cells, TableWriter& writer) {
  std::vector<std::int64_t> values(cells.size());
  for (std::size_t bucket = 0; bucket < kNumBuckets; ++bucket) {
    for (std::size_t i = 0; i < cells.size(); ++i) {
      values[i] = cells[i].buckets_ns[bucket];
    }
    writer.numbers(bucket_column(bucket), values);
  }
}

void read_buckets(const TableFile& file, std::vector<StageCell>& cells) {
  for (std::size_t bucket = 0; bucket < kNumBuckets; ++bucket) {
    const std::string name = bucket_column(bucket);
    const std::vector<std::int64_t> values = file.numbers(name);
    if (!values.empty() && values.size() != cells.size()) {
      damaged(name);
    }
    for (std::size_t i = 0; i < values.size(); ++i) {
      cells[i].buckets_ns[bucket] = values[i];
    }
  }
}

void sort_rows(RankSummary& summary) {
  std::sort(summary.stages.begin(), summary.stages.end(),
            [](const StageCell& a, const StageCell& b) { return a.stage < b.stage; });
  std::sort(summary.kernels.begin(), summary.kernels.end(),
            [](const KernelCell& a, const KernelCell& b) {
              return std::tie(a.stage, a.kernel, a.family) < std::tie(b.stage, b.kernel, b.family);
            });
  std::sort(summary.collectives.begin(), summary.collectives.end(),
            [](const CollectiveCall& a, const CollectiveCall& b) {
              return std::tie(a.communicator, a.sequence) < std::tie(b.communicator, b.sequence);
            });
}

}  // namespace

HistogramColumns::HistogramColumns(const TableFile& file, std::size_t num_rows)
    : steps_(file.numbers(kHistogramSteps)), counts_(file.numbers(kHistogramLaunches)) {
  const std::vector<std::int64_t> sizes = file.numbers(kHistogramSizes);
  offsets_.resize(num_rows + 1);
  if (sizes.empty()) {
    return;
  }
  if (sizes.size() != num_rows || steps_.size() != counts_.size()) {
    damaged(kHistogramSizes);
  }
  std::size_t offset = 0;
  for (std::size_t i = 0; i < num_rows; ++i) {
    if (static_cast<std::uint64_t>(sizes[i]) > steps_.size() - offset) {
      damaged(kHistogramSteps);
    }
    offset += static_cast<std::size_t>(sizes[i]);
    offsets_[i + 1] = offset;
  }
  if (std::any_of(steps_.begin(), steps_.end(),
                  [](std::int64_t step) { return step >= kNumDurationSteps; })) {
    damaged(kHistogramSteps);
  }
}

std::string bucket_column(std::size_t bucket) {
  return fmt::format("stage.{}_ns", kBucketNames[bucket]);
}

std::string summary_bytes(const RankSummary& given) {
  RankSummary summary = given;
  sort_rows(summary);
  const std::vector<RankIdentity> identity = {summary.identity};  // the writer keeps views of it
  TableWriter writer;
  write_columns(identity, kIdentityFields, writer);
  write_columns(summary.stages, kStageFields, writer);
  write_buckets(summary.stages, writer);
  write_columns(summary.kernels, kKernelFields, writer);
  write_histograms(summary.kernels, writer);
  write_columns(summary.collectives, kCollectiveFields, writer);
  return writer.finish(kRankKind);
}

RankSummary read_summary(std::string_view bytes) {
  const TableFile file(bytes);
  if (file.kind() != kRankKind) {
    throw Error(ErrorKind::kInput,
                fmt::format("a summary of kind '{}', and one rank's is wanted",
                            file.kind() == "fleet" ? "fleet" : "unknown"),
                "summaries of ranks are the summary.llmprof of their bundles");
  }
  RankSummary summary;
  const auto identities = read_columns<RankIdentity>(file, kIdentityFields);
  if (identities.size() != 1) {
    damaged("rank.run_id");
  }
  summary.identity = identities[0];
  summary.stages = read_columns<StageCell>(file, kStageFields);
  read_buckets(file, summary.stages);
  summary.kernels = read_columns<KernelCell>(file, kKernelFields);
  read_histograms(file, summary.kernels);
  summary.collectives = read_columns<CollectiveCall>(file, kCollectiveFields);
  sort_rows(summary);
  return summary;
}

}  // namespace llmprof
