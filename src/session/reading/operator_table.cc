// SPDX-License-Identifier: Apache-2.0
//
// Aggregation of a program's own operator measurements, by operator and by layer.
//
// The times are from a separate pass, in which every operator waits for the one before it: shares
// are right, sums are not what the timed passes took. So they are shown next to the time of the
// same pass, never another.
#include "session/reading/operator_table.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "analysis/operators/operators.h"
#include "analysis/profile.h"
#include "base/error.h"
#include "base/parse_number.h"
#include "bundle/layout.h"
#include "results/row.h"

namespace gpuwhy {
namespace {

constexpr const char* kNoLayer = "outside layers";

// Counts in hostile tables may overflow when summed; then the sum is unknown.
void add_count(const std::optional<std::int64_t>& count, bool is_first,
               std::optional<std::int64_t>& sum) {
  std::int64_t result = 0;
  if (!count || (!sum && !is_first) || __builtin_add_overflow(sum.value_or(0), *count, &result)) {
    sum = std::nullopt;
    return;
  }
  sum = result;
}

// Layers are numbers if the program is a transformer; other names come after them.
std::pair<std::int64_t, std::string> order_of(const std::string& layer) {
  return {layer.empty() ? INT64_MAX : parse_whole(layer).value_or(INT64_MAX - 1), layer};
}

// A table need not say the stage.
RowName stage_of(const OperatorTable::Row& row) {
  return row.stage.empty() ? RowName() : recorded_stage(row.stage);
}

// By operator and stage, over all layers.
std::vector<OperatorRow> rows_of(const OperatorTable& table) {
  std::map<std::pair<std::string, RowName>, OperatorRow> records;
  for (const OperatorTable::Row& row : table.rows) {
    const std::string name = row.name.empty() ? row.op : row.op + " " + row.name;
    const RowName stage = stage_of(row);
    const auto [found, is_new] = records.try_emplace({name, stage});
    OperatorRow& record = found->second;
    record.name = name;
    record.stage = stage;
    record.total_ns += row.total_ns;
    record.calls += row.calls;
    add_count(row.flops, is_new, record.flops);
    add_count(row.bytes, is_new, record.bytes);
  }
  std::vector<OperatorRow> rows;
  rows.reserve(records.size());
  for (auto& [key, record] : records) {
    rows.push_back(std::move(record));
  }
  std::sort(rows.begin(), rows.end(), [](const OperatorRow& a, const OperatorRow& b) {
    return std::tuple(-a.total_ns, a.name, a.stage) < std::tuple(-b.total_ns, b.name, b.stage);
  });
  return rows;
}

// By layer, over all stages. A table without layers gives none, not one large row.
std::vector<LayerTotal> layers_of(const OperatorTable& table) {
  std::map<std::pair<std::int64_t, std::string>, LayerTotal> totals;
  bool has_layers = false;
  for (const OperatorTable::Row& row : table.rows) {
    LayerTotal& total = totals[order_of(row.layer)];
    total.layer = row.layer.empty() ? kNoLayer : row.layer;
    total.total_ns += row.total_ns;
    total.calls += row.calls;
    has_layers = has_layers || !row.layer.empty();
  }
  std::vector<LayerTotal> layers;
  layers.reserve(totals.size());
  for (auto& [order, total] : totals) {
    layers.push_back(std::move(total));
  }
  return has_layers ? layers : std::vector<LayerTotal>();
}

}  // namespace

Operators operators_of(const OperatorTable& table) {
  Operators operators;
  operators.source = "the program's own table, of a pass in which operators wait for each other";
  operators.rows = rows_of(table);
  operators.layers = layers_of(table);
  for (const OperatorRow& record : operators.rows) {
    operators.covered_ns += record.total_ns;
  }
  for (const OperatorTable::Stage& stage : table.stages) {
    operators.whole_ns += stage.total_ns;
  }
  finish_operators(false, operators);
  return operators;
}

std::filesystem::path baseline_file(const std::filesystem::path& bundle, const char* file) {
  std::error_code ignored;
  const std::filesystem::path old = bundle / "stage1" / std::filesystem::path(file).filename();
  return std::filesystem::is_regular_file(old, ignored) ? old : bundle / file;
}

// The table is optional evidence: one that cannot be read is noted, and the run goes on.
void read_operators(const std::filesystem::path& bundle, Besides& evidence) {
  const std::filesystem::path file = baseline_file(bundle, layout::kOperatorTable);
  std::error_code ignored;
  if (!std::filesystem::is_regular_file(file, ignored)) {
    return;
  }
  try {
    const OperatorTable table = load_operators_csv(file);
    if (table.num_bad_rows > 0) {
      evidence.diagnostics.push_back(
          {"operator_row_damaged", Severity::kWarning, table.num_bad_rows,
           std::to_string(table.num_bad_rows) + " rows of the table of operators are left out"});
    }
    std::set<std::string> renamed;
    for (const OperatorTable::Row& row : table.rows) {
      if (stage_of(row).stage != row.stage && renamed.insert(row.stage).second) {
        evidence.diagnostics.push_back(renamed_stage(row.stage));
      }
    }
    evidence.operators = operators_of(table);
  } catch (const Error& error) {
    evidence.diagnostics.push_back({"operators_unreadable", Severity::kWarning, 1, error.what()});
  }
}

}  // namespace gpuwhy
