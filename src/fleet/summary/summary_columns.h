// SPDX-License-Identifier: Apache-2.0
//
// Mapping between the fields of a summary and the columns of its file.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "fleet/summary/columnar_file.h"
#include "fleet/summary/rank_summary.h"
#include "results/duration_histogram.h"

namespace gpuwhy {

// The columns of one table. Writer and reader use the same list.
template <typename Row, std::size_t NumTexts, std::size_t NumNumbers>
struct SummaryFields {
  std::size_t most_rows;  // limit: an untrusted byte must not cost a kilobyte
  std::array<std::pair<const char*, std::string Row::*>, NumTexts>
      texts;  // the first one is always present
  std::array<std::pair<const char*, std::int64_t Row::*>, NumNumbers> numbers;
};

inline constexpr SummaryFields<RankIdentity, 12, 5> kIdentityFields = {
    1,
    {{{"rank.run_id", &RankIdentity::run_id},
      {"rank.node", &RankIdentity::node},
      {"rank.gpu", &RankIdentity::gpu},
      {"rank.model", &RankIdentity::model},
      {"rank.engine", &RankIdentity::engine},
      {"rank.engine_version", &RankIdentity::engine_version},
      {"rank.driver_version", &RankIdentity::driver_version},
      {"rank.gpuwhy_version", &RankIdentity::gpuwhy_version},
      {"rank.recorded_by", &RankIdentity::recorded_by},
      {"rank.communicators_by", &RankIdentity::communicators_by},
      {"rank.failure", &RankIdentity::failure},
      {"rank.labels", &RankIdentity::labels}}},
    {{{"rank.rank", &RankIdentity::rank},
      {"rank.num_ranks", &RankIdentity::num_ranks},
      {"rank.attempt", &RankIdentity::attempt},
      {"rank.started_unix_s", &RankIdentity::started_unix_s},
      {"rank.exit_code", &RankIdentity::exit_code}}}};

inline constexpr SummaryFields<StageCell, 1, 11> kStageFields = {
    1'000,
    {{{"stage.stage", &StageCell::stage}}},
    {{{"stage.instances", &StageCell::instances},
      {"stage.total_ns", &StageCell::total_ns},
      {"stage.min_ns", &StageCell::min_ns},
      {"stage.max_ns", &StageCell::max_ns},
      {"stage.tokens", &StageCell::tokens},
      {"stage.kernel_ns", &StageCell::kernel_ns},
      {"stage.window_ns", &StageCell::window_ns},
      {"stage.model_flops", &StageCell::model_flops},
      {"stage.peak_flops", &StageCell::peak_flops},
      {"stage.model_bytes", &StageCell::model_bytes},
      {"stage.peak_bytes", &StageCell::peak_bytes}}}};

inline constexpr SummaryFields<KernelCell, 3, 4> kKernelFields = {
    200'000,
    {{{"kernel.stage", &KernelCell::stage},
      {"kernel.kernel", &KernelCell::kernel},
      {"kernel.family", &KernelCell::family}}},
    {{{"kernel.calls", &KernelCell::calls},
      {"kernel.total_ns", &KernelCell::total_ns},
      {"kernel.min_ns", &KernelCell::min_ns},
      {"kernel.max_ns", &KernelCell::max_ns}}}};

inline constexpr SummaryFields<CollectiveCall, 3, 3> kCollectiveFields = {
    200'000,
    {{{"collective.communicator", &CollectiveCall::communicator},
      {"collective.stage", &CollectiveCall::stage},
      {"collective.kernel", &CollectiveCall::kernel}}},
    {{{"collective.sequence", &CollectiveCall::sequence},
      {"collective.arrival_ns", &CollectiveCall::arrival_ns},
      {"collective.duration_ns", &CollectiveCall::duration_ns}}}};

inline constexpr SummaryFields<GroupCell, 4, 8> kGroupFields = {
    10'000,
    {{{"group.communicator", &GroupCell::communicator},
      {"group.operation", &GroupCell::operation},
      {"group.description", &GroupCell::description},
      {"group.ranks", &GroupCell::ranks}}},
    {{{"group.size", &GroupCell::size},
      {"group.calls", &GroupCell::calls},
      {"group.total_ns", &GroupCell::total_ns},
      {"group.forward_layers", &GroupCell::forward_layers},
      {"group.forward_layers_with", &GroupCell::forward_layers_with},
      {"group.forward_calls", &GroupCell::forward_calls},
      {"group.backward_layers", &GroupCell::backward_layers},
      {"group.backward_calls", &GroupCell::backward_calls}}}};

inline constexpr SummaryFields<PartCell, 3, 3> kPartFields = {
    10'000,
    {{{"part.pass", &PartCell::pass},
      {"part.block", &PartCell::block},
      {"part.part", &PartCell::part}}},
    {{{"part.passes", &PartCell::passes},
      {"part.launches", &PartCell::launches},
      {"part.total_ns", &PartCell::total_ns}}}};

[[noreturn]] void wrong_length(std::string_view column);  // throws kInput

// Rows to columns, and back.
template <typename Row, typename Field>
void write_columns(const std::vector<Row>& rows, const Field& fields, ColumnarWriter& writer) {
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

// Fills `rows` from their columns; columns that the writer did not know are left empty.
template <typename Row, typename Field>
void read_into(const ColumnarFile& file, const Field& fields, std::vector<Row>& rows) {
  const auto fits = [&](std::size_t size, const char* name) {
    if (size != rows.size() && size != 0) {
      wrong_length(name);
    }
    return size != 0;
  };
  for (const auto& [name, member] : fields.texts) {
    const std::vector<std::uint32_t> ids = file.text_ids(name);
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
}

// As many rows as the first text column has.
template <typename Row, typename Field>
std::vector<Row> read_columns(const ColumnarFile& file, const Field& fields) {
  const char* first = fields.texts[0].first;
  const std::size_t size = file.size_of(first);
  if (size > fields.most_rows) {
    wrong_length(first);
  }
  std::vector<Row> rows(size);
  read_into(file, fields, rows);
  return rows;
}

std::string bucket_column(std::size_t bucket);  // "ledger.<bucket>_ns"

// A histogram per row: number of filled bins per row, then all bins and their counts in row order.
// Bins are those of analysis/duration_histogram.h.
struct StepColumnNames {
  const char* sizes;
  const char* steps;
  const char* counts;
};
inline constexpr StepColumnNames kDurations = {"kernel.histogram_size", "kernel.histogram_step",
                                               "kernel.histogram_launches"};

class StepColumns {
 public:
  StepColumns(const ColumnarFile& file, const StepColumnNames& names,
              std::size_t num_rows);  // throws kInput

  std::size_t begin(std::size_t row) const { return offsets_[row]; }
  std::size_t end(std::size_t row) const { return offsets_[row + 1]; }
  int step(std::size_t at) const { return static_cast<int>(steps_[at]); }
  std::int64_t count(std::size_t at) const { return counts_[at]; }
  std::map<int, std::int64_t> at_row(std::size_t row) const;

 private:
  std::vector<std::size_t> offsets_;
  std::vector<std::int64_t> steps_;
  std::vector<std::int64_t> counts_;
};
void write_steps(const std::vector<const std::map<int, std::int64_t>*>& rows,
                 const StepColumnNames& names, ColumnarWriter& writer);

// The ledger buckets of stages.
template <typename Row>
void write_buckets(const std::vector<Row>& cells, ColumnarWriter& writer) {
  std::vector<std::int64_t> values(cells.size());
  for (std::size_t bucket = 0; bucket < kNumBuckets; ++bucket) {
    for (std::size_t i = 0; i < cells.size(); ++i) {
      values[i] = cells[i].buckets_ns[bucket];
    }
    writer.numbers(bucket_column(bucket), values);
  }
}

template <typename Row>
void read_buckets(const ColumnarFile& file, std::vector<Row>& cells) {
  for (std::size_t bucket = 0; bucket < kNumBuckets; ++bucket) {
    const std::string name = bucket_column(bucket);
    const std::vector<std::int64_t> values = file.numbers(name);
    if (!values.empty() && values.size() != cells.size()) {
      wrong_length(name);
    }
    for (std::size_t i = 0; i < values.size(); ++i) {
      cells[i].buckets_ns[bucket] = values[i];
    }
  }
}

}  // namespace gpuwhy
