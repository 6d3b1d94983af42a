// SPDX-License-Identifier: Apache-2.0
//
// Rows as the columns of a summary's file, by their descriptions (kFormRanks): writer and reader
// follow the same one. Texts come first, then numbers, then lists: a histogram is the number of
// filled bins per row, then all bins and their counts in row order.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "fleet/summary/columnar_file.h"
#include "results/rank_summary.h"

namespace gpuwhy {

// Limits for rows of a table: an untrusted byte must not cost a kilobyte.
inline constexpr std::size_t kMostRankStages = 1'000;
inline constexpr std::size_t kMostRankRows = 200'000;  // of kernels, and of collectives
inline constexpr std::size_t kMostRankGroups = 10'000;
inline constexpr std::size_t kMostRankParts = 10'000;
inline constexpr std::size_t kMostJobRows = 10'000'000;

[[noreturn]] void wrong_length(std::string_view column);  // throws kInput

using BinMap = std::map<int, std::int64_t>;

// A histogram per row. Bins are those of results/duration_histogram.h.
class BinColumns {
 public:
  // `name` as "kernel.histogram", `counted` what its bins count. Throws kInput.
  BinColumns(const ColumnarFile& file, const std::string& name, std::string_view counted,
             std::size_t num_rows);

  std::size_t begin(std::size_t row) const { return offsets_[row]; }
  std::size_t end(std::size_t row) const { return offsets_[row + 1]; }
  int step(std::size_t at) const { return static_cast<int>(steps_[at]); }
  std::int64_t count(std::size_t at) const { return counts_[at]; }
  BinMap at_row(std::size_t row) const;

 private:
  std::vector<std::size_t> offsets_;
  std::vector<std::int64_t> steps_;
  std::vector<std::int64_t> counts_;
};
void write_bins(const std::vector<const BinMap*>& rows, const std::string& name,
                std::string_view counted, ColumnarWriter& writer);

std::string bucket_column(std::size_t bucket);  // "ledger.<bucket>_ns"

// Calls `visit` with the column's name, the member and the field of each column of a row.
template <typename Row, typename Visit>
void each_column(std::string_view table, Visit&& visit) {
  describe(static_cast<const Row*>(nullptr), [&](std::string_view key, auto member,
                                                 const Field& field) {
    if ((field.forms & kFormRanks) != 0) {
      visit(std::string(table) + "." + std::string(field.form_name.empty() ? key : field.form_name),
            member, field);
    }
  });
}

// The texts and numbers of rows, or of the part of them that `Row` describes.
template <typename Row, typename Whole>
void write_columns(const std::vector<Whole>& rows, std::string_view table, ColumnarWriter& writer) {
  each_column<Row>(table, [&](const std::string& name, auto member, const Field& /*field*/) {
    if constexpr (kIsText<ValueOf<Row, decltype(member)>>) {
      std::vector<std::string_view> texts;
      texts.reserve(rows.size());
      for (const Whole& row : rows) {
        texts.push_back(row.*member);
      }
      writer.texts(name, texts);
    }
  });
  each_column<Row>(table, [&](const std::string& name, auto member, const Field& /*field*/) {
    if constexpr (std::is_same_v<ValueOf<Row, decltype(member)>, std::int64_t>) {
      std::vector<std::int64_t> numbers;
      numbers.reserve(rows.size());
      for (const Whole& row : rows) {
        numbers.push_back(row.*member);
      }
      writer.numbers(name, numbers);
    }
  });
}

// Their times by bucket and their histograms.
template <typename Row, typename Whole>
void write_lists(const std::vector<Whole>& rows, std::string_view table, ColumnarWriter& writer) {
  each_column<Row>(table, [&](const std::string& name, auto member, const Field& field) {
    if constexpr (std::is_same_v<ValueOf<Row, decltype(member)>, BucketTimes>) {
      std::vector<std::int64_t> times(rows.size());
      for (std::size_t bucket = 0; bucket < kNumBuckets; ++bucket) {
        for (std::size_t i = 0; i < rows.size(); ++i) {
          times[i] = (rows[i].*member)[bucket];
        }
        writer.numbers(bucket_column(bucket), times);
      }
    } else if constexpr (std::is_same_v<ValueOf<Row, decltype(member)>, BinMap>) {
      std::vector<const BinMap*> bins;
      bins.reserve(rows.size());
      for (const Whole& row : rows) {
        bins.push_back(&(row.*member));
      }
      write_bins(bins, name, field.info.count, writer);
    }
  });
}

template <typename Row>
void write_rows(const std::vector<Row>& rows, std::string_view table, ColumnarWriter& writer) {
  write_columns<Row>(rows, table, writer);
  write_lists<Row>(rows, table, writer);
}

// Fills `rows` from their columns; columns that the writer did not know are left empty.
template <typename Row, typename Whole>
void read_into(const ColumnarFile& file, std::string_view table, std::vector<Whole>& rows) {
  const auto fill = [&](const std::string& name, const auto& values, const auto& put) {
    if (values.size() != rows.size() && (requires { Row::kNeedsAll; } || !values.empty())) {
      wrong_length(name);
    }
    for (std::size_t i = 0; i < values.size(); ++i) {
      put(rows[i], values[i]);
    }
  };
  each_column<Row>(table, [&](const std::string& name, auto member, const Field& field) {
    using Value = ValueOf<Row, decltype(member)>;
    if constexpr (kIsText<Value>) {
      fill(name, file.text_ids(name),
           [&](Whole& row, std::uint32_t id) { row.*member = file.texts()[id]; });
    } else if constexpr (std::is_same_v<Value, std::uint32_t>) {
      fill(name, file.text_ids(name), [&](Whole& row, std::uint32_t id) { row.*member = id; });
    } else if constexpr (std::is_same_v<Value, std::int64_t>) {
      fill(name, file.numbers(name),
           [&](Whole& row, std::int64_t number) { row.*member = number; });
    } else if constexpr (std::is_same_v<Value, BucketTimes>) {
      for (std::size_t bucket = 0; bucket < kNumBuckets; ++bucket) {
        fill(bucket_column(bucket), file.numbers(bucket_column(bucket)),
             [&](Whole& row, std::int64_t time_ns) { (row.*member)[bucket] = time_ns; });
      }
    } else {
      const BinColumns bins(file, name, field.info.count, rows.size());
      for (std::size_t i = 0; i < rows.size(); ++i) {
        rows[i].*member = bins.at_row(i);
      }
    }
  });
}

// As many rows as the first column of `Row` has.
template <typename Row, typename Whole = Row>
std::vector<Whole> read_rows(const ColumnarFile& file, std::string_view table,
                             std::size_t most_rows) {
  std::string first;
  each_column<Row>(table, [&](const std::string& name, auto /*member*/, const Field& /*field*/) {
    first = first.empty() ? name : first;
  });
  const std::size_t size = file.size_of(first);
  if (size > most_rows) {
    wrong_length(first);
  }
  std::vector<Whole> rows(size);
  read_into<Row>(file, table, rows);
  if constexpr (!std::is_same_v<Row, Whole>) {
    read_into<Whole>(file, table, rows);
  }
  return rows;
}

// The tables of a rank's summary, with the limits for their rows.
template <typename Summary, typename Visit>
void each_table(Summary& summary, Visit&& visit) {
  visit("stage", summary.stages, kMostRankStages);
  visit("kernel", summary.kernels, kMostRankRows);
  visit("collective", summary.collectives, kMostRankRows);
  visit("group", summary.groups, kMostRankGroups);
  visit("part", summary.parts, kMostRankParts);
}

// The identity of a rank's summary. Throws kInput unless there is one.
RankIdentity read_identity(const ColumnarFile& file);

}  // namespace gpuwhy
