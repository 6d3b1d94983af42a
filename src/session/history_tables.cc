// SPDX-License-Identifier: Apache-2.0
//
// A history as Parquet: the summaries of many ranks as tables that DuckDB, polars, Spark and
// ClickHouse read directly.
//
// A file contains whole ranks of one run and is named by the run, so a run that is exported again
// replaces itself, and readers take all files of a folder by a pattern. Texts are stored once per
// file. A histogram is one text ("80:2 81:5"), because the writer has flat columns only.
#include "session/history_tables.h"

#include <algorithm>
#include <array>
#include <deque>
#include <set>
#include <unordered_map>

#include <fmt/format.h>

#include "base/error.h"
#include "base/file.h"
#include "export/parquet.h"
#include "fleet/history/history.h"
#include "fleet/history/summary_folder.h"
#include "session/version.h"

namespace gpuwhy {
namespace {

namespace fs = std::filesystem;

constexpr const char* kTables[] = {"ranks", "stages", "kernels", "collectives", "groups", "parts"};

// Numbers for texts, each stored once.
class TextKeys {
 public:
  std::int64_t of(const std::string& text) {
    const auto [found, is_new] = keys_.try_emplace(text, static_cast<std::int64_t>(texts_.size()));
    if (is_new) {
      texts_.push_back(text);
    }
    return found->second;
  }
  std::string_view operator[](std::int64_t key) const {
    return texts_[static_cast<std::size_t>(key)];
  }

 private:
  std::unordered_map<std::string, std::int64_t> keys_;
  std::deque<std::string> texts_;  // a deque: texts stay where they are
};

// Rows of one table, as numbers; texts by key. In a column that is optional, an empty text or a 0
// is a missing value.
class HistoryRows {
 public:
  HistoryRows(const char* name, std::vector<ResultColumn> columns)
      : name_(name), columns_(std::move(columns)) {}

  void add(const std::vector<std::int64_t>& row) {
    values_.insert(values_.end(), row.begin(), row.end());
  }
  std::size_t num_rows() const { return values_.size() / columns_.size(); }
  void clear() { values_.clear(); }

  // `empty_text` is the key of the empty text.
  void write(const fs::path& file, const TextKeys& texts, std::int64_t empty_text) const {
    ColumnTable table{name_, num_rows(), columns_};
    for (std::size_t i = 0; i < columns_.size(); ++i) {
      ResultColumn& column = table.columns[i];
      const std::int64_t absent = column.type == ColumnType::kText ? empty_text : 0;
      column.value = [this, i, absent, is_optional = column.is_optional](std::size_t row) {
        const std::int64_t value = values_[row * columns_.size() + i];
        return is_optional && value == absent ? std::nullopt : std::optional(value);
      };
      column.text = [&texts](std::int64_t key) { return texts[key]; };
    }
    FileWriter writer(file);
    write_parquet(table,
                  {{"gpuwhy.schema", std::string("gpuwhy.history.") + name_},
                   {"gpuwhy.schema_version", fmt::to_string(kHistoryTablesVersion)}},
                  "gpuwhy version " + program_version(), writer);
    writer.commit();
  }

 private:
  const char* name_;
  std::vector<ResultColumn> columns_;
  std::vector<std::int64_t> values_;  // row by row
};

using BinMap = std::map<int, std::int64_t>;

std::string histogram_text(const BinMap& histogram) {
  std::string words;
  for (const auto& [step, count] : histogram) {
    words += fmt::format("{}{}:{}", words.empty() ? "" : " ", step, count);
  }
  return words;
}

// Calls `visit` with key, member and field of what a row has in these tables.
template <typename Row, typename Visit>
void each_field(Visit&& visit) {
  describe(static_cast<const Row*>(nullptr), [&](const char* key, auto member, const Field& field) {
    if ((field.forms & kFormHistory) != 0) {
      visit(key, member, field);
    }
  });
}

// The columns of a row. Every one begins with those by which tables can be joined.
template <typename Row>
std::vector<ResultColumn> columns_of_rows() {
  std::vector<ResultColumn> columns = {{"run_id", ColumnType::kText},
                                       {"attempt", ColumnType::kNumber},
                                       {"rank", ColumnType::kNumber}};
  each_field<Row>([&](const char* key, auto member, const Field& field) {
    using Value = ValueOf<Row, decltype(member)>;
    if constexpr (std::is_same_v<Value, BucketTimes>) {
      for (const char* bucket : kBucketNames) {
        columns.push_back({fmt::format("{}_ns", bucket), ColumnType::kNumber});
      }
    } else {
      columns.push_back(
          {key, std::is_same_v<Value, std::int64_t> ? ColumnType::kNumber : ColumnType::kText,
           field.is_null_if_empty});
    }
  });
  return columns;
}

// Appends the values of a row.
template <typename Row>
void add_values(const Row& row, TextKeys& texts, std::vector<std::int64_t>& values) {
  each_field<Row>([&](const char* /*key*/, auto member, const Field& /*field*/) {
    const auto& value = row.*member;
    using Value = std::remove_cvref_t<decltype(value)>;
    if constexpr (std::is_same_v<Value, std::int64_t>) {
      values.push_back(value);
    } else if constexpr (std::is_same_v<Value, BucketTimes>) {
      values.insert(values.end(), value.begin(), value.end());
    } else if constexpr (std::is_same_v<Value, BinMap>) {
      values.push_back(texts.of(histogram_text(value)));
    } else {
      values.push_back(texts.of(value));
    }
  });
}

// One file of each table, in the making.
class HistoryPart {
 public:
  // All rows of a rank go into the same file.
  void add(const RankSummary& summary) {
    const RankIdentity& identity = summary.identity;
    const std::vector<std::int64_t> place = {texts_.of(identity.run_id), identity.attempt,
                                             identity.rank};
    const auto add_all = [&](std::size_t table, const auto& rows) {
      for (const auto& row : rows) {
        std::vector<std::int64_t> values = place;
        add_values(row, texts_, values);
        tables_[table].add(values);
      }
    };
    add_all(0, std::vector{identity});
    add_all(1, summary.stages);
    add_all(2, summary.kernels);
    add_all(3, summary.collectives);
    add_all(4, summary.groups);
    add_all(5, summary.parts);
  }

  std::size_t num_rows() const {
    std::size_t num = 0;
    for (const HistoryRows& rows : tables_) {
      num += rows.num_rows();
    }
    return num;
  }

  // Under the same name in the folder of each table.
  void write(const fs::path& out, const std::string& name) {
    const std::int64_t empty_text = texts_.of("");
    for (std::size_t i = 0; i < tables_.size(); ++i) {
      tables_[i].write(out / kTables[i] / name, texts_, empty_text);
      tables_[i].clear();
    }
    texts_ = {};
  }

 private:
  TextKeys texts_;
  std::array<HistoryRows, 6> tables_ = {{{kTables[0], columns_of_rows<RankIdentity>()},
                                         {kTables[1], columns_of_rows<StageSums>()},
                                         {kTables[2], columns_of_rows<KernelSums>()},
                                         {kTables[3], columns_of_rows<CollectiveRow>()},
                                         {kTables[4], columns_of_rows<GroupRow>()},
                                         {kTables[5], columns_of_rows<PartRow>()}}};
};

// Removes the files of a run that an earlier, larger export left.
void remove_stale(const fs::path& folder, const std::string& prefix,
                  const std::set<std::string>& written) {
  std::error_code failure;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, failure)) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with(prefix) && name.ends_with(".parquet") && !written.contains(name)) {
      std::error_code ignored;
      fs::remove(entry.path(), ignored);
    }
  }
}

}  // namespace

WrittenHistory write_history_tables(const fs::path& summaries, const fs::path& out,
                                    std::size_t rows_per_file) {
  const CountedFiles counted = files_that_count(summaries);
  for (const char* table : kTables) {
    std::error_code failure;
    fs::create_directories(out / table, failure);
    if (failure) {
      throw Error(ErrorKind::kFailure,
                  fmt::format("cannot create {}: {}", (out / table).string(), failure.message()));
    }
  }
  WrittenHistory written;
  written.notes = counted.notes;
  for (const CountedRun& run : counted.runs) {
    const std::string prefix = fmt::format("{:016x}-", run.run_key);
    std::set<std::string> names;
    HistoryPart part;
    const auto close = [&] {
      const std::string name = fmt::format("{}{:04}.parquet", prefix, names.size());
      written.num_rows += part.num_rows();
      part.write(out, name);
      names.insert(name);
    };
    for (const fs::path& file : run.files) {
      part.add(load_summary(file).summary);
      ++written.num_ranks;
      if (part.num_rows() >= rows_per_file) {
        close();
      }
    }
    if (part.num_rows() > 0) {
      close();
    }
    for (const char* table : kTables) {
      remove_stale(out / table, prefix, names);
    }
    ++written.num_runs;
  }
  return written;
}

}  // namespace gpuwhy
