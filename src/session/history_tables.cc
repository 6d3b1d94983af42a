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

// A column of a table in memory.
struct HistoryColumn {
  std::string name;
  ColumnType type = ColumnType::kNumber;
  bool is_optional = false;  // an empty text or a 0 is a missing value
};

// Rows of one table, as numbers; texts by key.
class HistoryRows {
 public:
  HistoryRows(const char* name, std::vector<HistoryColumn> columns)
      : name_(name), columns_(std::move(columns)) {}

  void add(const std::vector<std::int64_t>& row) {
    values_.insert(values_.end(), row.begin(), row.end());
  }
  std::size_t num_rows() const { return values_.size() / columns_.size(); }
  void clear() { values_.clear(); }

  // `empty_text` is the key of the empty text.
  void write(const fs::path& file, const TextKeys& texts, std::int64_t empty_text) const {
    ColumnTable table{name_, num_rows(), {}};
    for (std::size_t i = 0; i < columns_.size(); ++i) {
      const HistoryColumn& column = columns_[i];
      const bool is_text = column.type == ColumnType::kText;
      table.columns.push_back(
          {column.name, column.type, column.is_optional,
           [this, i, is_optional = column.is_optional,
            absent = is_text ? empty_text : 0](std::size_t row) -> std::optional<std::int64_t> {
             const std::int64_t value = values_[row * columns_.size() + i];
             return is_optional && value == absent ? std::nullopt : std::optional(value);
           },
           [&texts](std::int64_t key) { return texts[key]; }});
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
  std::vector<HistoryColumn> columns_;
  std::vector<std::int64_t> values_;  // row by row
};

HistoryColumn number(std::string name) {
  return {std::move(name), ColumnType::kNumber, false};
}
HistoryColumn maybe_number(std::string name) {
  return {std::move(name), ColumnType::kNumber, true};
}
HistoryColumn text(std::string name) {
  return {std::move(name), ColumnType::kText, false};
}
HistoryColumn maybe_text(std::string name) {
  return {std::move(name), ColumnType::kText, true};
}

// The columns with which every row begins, so that tables can be joined by them.
std::vector<HistoryColumn> with_place(const std::vector<HistoryColumn>& others) {
  std::vector<HistoryColumn> columns = {text("run_id"), number("attempt"), number("rank")};
  columns.insert(columns.end(), others.begin(), others.end());
  return columns;
}

std::vector<HistoryColumn> stage_columns() {
  std::vector<HistoryColumn> columns = {text("stage")};
  for (const char* name :
       {"instances", "total_ns", "min_ns", "max_ns", "tokens", "kernel_ns", "window_ns"}) {
    columns.push_back(number(name));
  }
  for (const char* bucket : kBucketNames) {
    columns.push_back(number(fmt::format("{}_ns", bucket)));
  }
  // Both parts of a ratio are 0 where it is unknown.
  for (const char* name : {"model_flops", "peak_flops", "model_bytes", "peak_bytes"}) {
    columns.push_back(maybe_number(name));
  }
  return with_place(columns);
}

std::string histogram_text(const std::map<int, std::int64_t>& histogram) {
  std::string words;
  for (const auto& [step, count] : histogram) {
    words += fmt::format("{}{}:{}", words.empty() ? "" : " ", step, count);
  }
  return words;
}

// One file of each table, in the making.
class HistoryPart {
 public:
  // All rows of a rank go into the same file.
  void add(const RankSummary& summary) {
    const RankIdentity& identity = summary.identity;
    const std::vector<std::int64_t> place = {texts_.of(identity.run_id), identity.attempt,
                                             identity.rank};
    const auto row = [&](std::vector<std::int64_t> values) {
      values.insert(values.begin(), place.begin(), place.end());
      return values;
    };
    ranks_.add(row({identity.num_ranks, texts_.of(identity.node), texts_.of(identity.gpu),
                    texts_.of(identity.model), texts_.of(identity.engine),
                    texts_.of(identity.engine_version), texts_.of(identity.driver_version),
                    texts_.of(identity.gpuwhy_version), identity.started_unix_s,
                    texts_.of(identity.recorded_by), identity.exit_code,
                    texts_.of(identity.failure), texts_.of(identity.labels)}));
    for (const StageCell& cell : summary.stages) {
      std::vector<std::int64_t> values = {texts_.of(cell.stage), cell.instances, cell.total_ns,
                                          cell.min_ns,           cell.max_ns,    cell.tokens,
                                          cell.kernel_ns,        cell.window_ns};
      values.insert(values.end(), cell.buckets_ns.begin(), cell.buckets_ns.end());
      values.insert(values.end(),
                    {cell.model_flops, cell.peak_flops, cell.model_bytes, cell.peak_bytes});
      stages_.add(row(std::move(values)));
    }
    for (const KernelCell& cell : summary.kernels) {
      kernels_.add(row({texts_.of(cell.stage), texts_.of(cell.kernel), texts_.of(cell.family),
                        cell.calls, cell.total_ns, cell.min_ns, cell.max_ns,
                        texts_.of(histogram_text(cell.histogram))}));
    }
    for (const CollectiveCall& call : summary.collectives) {
      collectives_.add(row({texts_.of(call.communicator), call.sequence, texts_.of(call.stage),
                            texts_.of(call.kernel), call.arrival_ns, call.duration_ns}));
    }
    for (const GroupCell& cell : summary.groups) {
      groups_.add(
          row({texts_.of(cell.communicator), texts_.of(cell.operation), texts_.of(cell.description),
               texts_.of(cell.ranks), cell.size, cell.calls, cell.total_ns}));
    }
    for (const PartCell& cell : summary.parts) {
      parts_.add(row({texts_.of(cell.pass), texts_.of(cell.block), texts_.of(cell.part),
                      cell.passes, cell.launches, cell.total_ns}));
    }
  }

  std::size_t num_rows() const {
    return ranks_.num_rows() + stages_.num_rows() + kernels_.num_rows() + collectives_.num_rows() +
           groups_.num_rows() + parts_.num_rows();
  }

  // Under the same name in the folder of each table.
  void write(const fs::path& out, const std::string& name) {
    const std::int64_t empty_text = texts_.of("");
    for (const auto& [table, rows] :
         {std::pair(kTables[0], &ranks_), std::pair(kTables[1], &stages_),
          std::pair(kTables[2], &kernels_), std::pair(kTables[3], &collectives_),
          std::pair(kTables[4], &groups_), std::pair(kTables[5], &parts_)}) {
      rows->write(out / table / name, texts_, empty_text);
      rows->clear();
    }
    texts_ = {};
  }

 private:
  TextKeys texts_;
  HistoryRows ranks_{
      "ranks", with_place({maybe_number("num_ranks"), maybe_text("node"), maybe_text("gpu"),
                           maybe_text("model"), maybe_text("engine"), maybe_text("engine_version"),
                           maybe_text("driver_version"), maybe_text("gpuwhy_version"),
                           maybe_number("started_unix_s"), maybe_text("recorded_by"),
                           number("exit_code"), maybe_text("failure"), maybe_text("labels")})};
  HistoryRows stages_{"stages", stage_columns()};
  HistoryRows kernels_{"kernels", with_place({text("stage"), text("kernel"), text("family"),
                                              number("calls"), number("total_ns"), number("min_ns"),
                                              number("max_ns"), maybe_text("histogram")})};
  HistoryRows collectives_{
      "collectives", with_place({text("communicator"), number("sequence"), text("stage"),
                                 text("kernel"), number("arrival_ns"), number("duration_ns")})};
  HistoryRows groups_{
      "groups",
      with_place({text("communicator"), text("operation"), maybe_text("description"),
                  maybe_text("ranks"), maybe_number("size"), number("calls"), number("total_ns")})};
  HistoryRows parts_{"parts",
                     with_place({text("pass"), text("block"), text("part"), number("passes"),
                                 number("launches"), number("total_ns")})};
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
