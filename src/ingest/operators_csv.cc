// SPDX-License-Identifier: Apache-2.0
//
// Importer of operator tables that a program writes about itself.
//
// A program knows more about its operators than any recording: layer, weights, shapes. It writes a
// CSV with a heading line. Columns are found by name and unknown ones are ignored, so a program may
// write more.
//
// Numbers are integers with a limit, so that sums of times fit. Other rows are counted and dropped.
#include "ingest/operators_csv.h"

#include <algorithm>

#include "base/csv.h"
#include "base/error.h"
#include "base/file.h"
#include "base/parse_number.h"
#include "base/text.h"

namespace gpuwhy {
namespace {

using Cells = std::vector<std::string_view>;

constexpr std::size_t kMostOperators = 100'000;
constexpr std::int64_t kMostNs = 90'000'000'000'000;  // a day; times kMostOperators it still fits
constexpr std::uint64_t kMostBytes = 256 * kMiB;

std::optional<std::int64_t> whole_in(std::string_view text, std::int64_t most) {
  const auto value = parse_whole(trim(text));
  return value && *value >= 0 && *value <= most ? value : std::nullopt;
}

// Access to cells by column name.
class OperatorColumns {
 public:
  explicit OperatorColumns(const Cells& headings) {
    for (const std::string_view heading : headings) {
      names_.emplace_back(trim(heading));
    }
  }

  bool has(std::string_view name) const { return at(name) < names_.size(); }
  std::string_view text(const Cells& cells, std::string_view name) const {
    const std::size_t column = at(name);
    return column < cells.size() ? trim(cells[column]) : std::string_view();
  }
  std::optional<std::int64_t> number(const Cells& cells, std::string_view name,
                                     std::int64_t most = INT64_MAX) const {
    return whole_in(text(cells, name), most);
  }

 private:
  std::size_t at(std::string_view name) const {
    return static_cast<std::size_t>(std::find(names_.begin(), names_.end(), name) - names_.begin());
  }

  std::vector<std::string> names_;
};

}  // namespace

OperatorTable parse_operators_csv(std::string_view text) {
  CsvReader reader(text);
  const OperatorColumns columns(reader.is_done() ? Cells() : reader.next());
  for (const char* needed : {"kind", "stage", "op", "calls", "total_ns"}) {
    if (!columns.has(needed)) {
      throw Error(ErrorKind::kInput,
                  std::string("not a table of operators: it has no column ") + needed,
                  "docs/formats.md has its columns");
    }
  }
  OperatorTable table;
  while (!reader.is_done() && table.rows.size() + table.stages.size() < kMostOperators) {
    const Cells& cells = reader.next();
    const std::string_view kind = columns.text(cells, "kind");
    const auto calls = columns.number(cells, "calls", kMostNs);
    const auto total_ns = columns.number(cells, "total_ns", kMostNs);
    // A damaged row costs only itself, and is counted.
    if (!calls || !total_ns || (kind != "stage" && kind != "operator")) {
      ++table.num_bad_rows;
      continue;
    }
    const std::string stage(columns.text(cells, "stage"));
    if (kind == "stage") {
      table.stages.push_back({stage, *calls, *total_ns});
      continue;
    }
    table.rows.push_back({stage, std::string(columns.text(cells, "op")),
                          std::string(columns.text(cells, "name")),
                          std::string(columns.text(cells, "layer")), *calls, *total_ns,
                          columns.number(cells, "flops"), columns.number(cells, "bytes")});
  }
  return table;
}

OperatorTable load_operators_csv(const std::filesystem::path& path) {
  return with_context(path.string(),
                      [&] { return parse_operators_csv(read_file(path, kMostBytes)); });
}

}  // namespace gpuwhy
