// SPDX-License-Identifier: Apache-2.0
//
// gpuwhy table: one table of a recording, for people and for scripts.
//
// The list of tables is that of the library (api/tables.cc). For a person, a table that a section
// of the report shows is that section; others are shown by their columns, whose names end in their
// units. Scripts get all columns and all rows, under the same names in CSV, JSON and Arrow.
#include <algorithm>
#include <bit>
#include <filesystem>
#include <memory>

#include <fmt/format.h>

#include "analysis/profile.h"
#include "analysis/stages/ranges.h"
#include "api/tables.h"
#include "base/error.h"
#include "base/exit_code.h"
#include "base/text.h"
#include "cli/command.h"
#include "cli/json_output.h"
#include "cli/recording_options.h"
#include "report/sections/sections.h"

namespace gpuwhy {
namespace {

struct TableOptions {
  std::vector<std::string> words;  // NAME and FILE..., or one of both
  std::string stage;
  RowLimit top{20};
  std::string format = "text";
  bool is_json = false;
  JsonPages pages;
  RecordingOptions recording;
  ModelChoice model;
};

// The rows of one stage, where the table says the stage of each; empty: of all.
std::vector<std::size_t> rows_of(const ColumnTable& table, const std::string& stage) {
  const auto stages = std::ranges::find(table.columns, "stage", &ResultColumn::name);
  const bool has_all = stage.empty() || stages == table.columns.end();
  std::vector<std::size_t> rows;
  for (std::size_t row = 0; row < table.num_rows; ++row) {
    const auto key = has_all ? std::nullopt : stages->value(row);
    if (has_all || (key && stages->text(*key) == stage)) {
      rows.push_back(row);
    }
  }
  return rows;
}

CellFormat format_of(const ResultColumn& column) {
  constexpr std::pair<std::string_view, CellFormat> kUnits[] = {
      {"ns", CellFormat::kDuration},
      {"fraction", CellFormat::kFraction},
      {"bytes", CellFormat::kBytes},
      {"B", CellFormat::kBytes},
      {"bytes/s", CellFormat::kBytesPerSecond},
      {"B/s", CellFormat::kBytesPerSecond},
      {"FLOP", CellFormat::kFlops},
      {"flops", CellFormat::kFlops},
      {"FLOP/s", CellFormat::kTeraflops}};
  switch (column.type) {
    case ColumnType::kText:
    case ColumnType::kName:
      return CellFormat::kName;
    case ColumnType::kFlag:
      return CellFormat::kText;
    default:
      break;
  }
  const auto* const found =
      std::ranges::find(kUnits, column.unit, &std::pair<std::string_view, CellFormat>::first);
  return found != std::end(kUnits)          ? found->second
         : column.type == ColumnType::kReal ? CellFormat::kRate
                                            : CellFormat::kCount;
}

CellValue cell_value(const ResultColumn& column, std::size_t row) {
  const auto value = column.value(row);
  if (!value) {
    return {};
  }
  return column.type == ColumnType::kFlag   ? CellValue(std::string(*value != 0 ? "yes" : "no"))
         : column.type == ColumnType::kReal ? CellValue(std::bit_cast<double>(*value))
         : column.text                      ? CellValue(valid_text(column.text(*value)))
                                            : CellValue(*value);
}

Document columns_document(const TableInfo& info, const ColumnTable& table,
                          std::vector<std::size_t> rows, std::size_t most) {
  Section section;
  section.id = info.name;
  section.title = info.summary;
  section.paragraphs.push_back(
      fmt::format("{} of {} rows", std::min(most, rows.size()), rows.size()));
  rows.resize(std::min(most, rows.size()));
  ReportTable& shown = section.tables.emplace_back();
  shown.rows.resize(rows.size());
  for (const ResultColumn& column : without_lists(table.columns)) {
    std::string title = column.name;
    for (const std::string_view ending : {"_ns", "_fraction", "_bytes"}) {
      title.resize(title.size() - (title.ends_with(ending) ? ending.size() : 0));
    }
    std::ranges::replace(title, '_', ' ');
    shown.columns.push_back({title, column.name, format_of(column)});
    for (std::size_t i = 0; i < rows.size(); ++i) {
      shown.rows[i].cells.push_back({cell_value(column, rows[i]), format_of(column), ""});
    }
  }
  return {"", {std::move(section)}};
}

// Rows are written by their columns: a tree of all of them would be many times as large.
std::string json_text(const TableInfo& info, const TableResult& made, const ColumnTable& table,
                      const std::vector<std::size_t>& rows) {
  return fmt::format(
      "{{\n  \"schema\": \"gpuwhy.table\",\n  \"schema_version\": 1,\n  \"table\": {},\n"
      "  \"reason\": {},\n  \"rows\": {}\n}}\n",
      json_string(info.name), made.reason.empty() ? "null" : json_string(made.reason),
      json_of_columns(table.columns, rows, 2));
}

// A part of the recording by time has all its stages: `stage` is empty then.
std::shared_ptr<const OpenRecording> read_part(TableOptions& options,
                                               const std::vector<std::string>& files,
                                               Context& context) {
  check_model_options(options.model);
  options.model.setup.num_gpus = options.recording.parallelism.ranks_per_model();
  auto recording = std::make_shared<OpenRecording>(
      read_recording(files, options.recording, options.model, context.system));
  Analysis& analysis = recording->profile.analysis;
  const auto phase = options.recording.window.is_empty()
                         ? window_of_phase(row_name(options.stage), analysis)
                         : std::nullopt;
  if (phase) {
    options.recording.window = *phase;
    options.stage.clear();
    *recording = read_recording(files, options.recording, options.model, context.system);
  } else if (!options.stage.empty()) {
    keep_stage(row_name(options.stage), analysis);
  }
  say_how_read(recording->profile, context.console);
  analysis.ranges = analysis.all_ranges;  // a report has the first hundred
  return recording;
}

// The list is a table too: the names, and how many rows each has where there is a recording.
struct ListedTable {
  std::string name, summary;
  std::optional<std::int64_t> num_rows;
};

template <typename F>
void describe(const ListedTable*, F&& f) {
  f("table", &ListedTable::name, plain("its name"));
  f("rows", &ListedTable::num_rows, plain("how many it has"));
  f("what it has", &ListedTable::summary, plain("in words"));
}

TableResult list_tables(const std::shared_ptr<const OpenRecording>& recording) {
  auto rows = std::make_shared<std::vector<ListedTable>>();
  for (const TableInfo& info : all_tables()) {
    ListedTable& row = rows->emplace_back(ListedTable{info.name, info.summary, {}});
    if (const TableResult made = recording ? info.make(recording) : TableResult{}; made.columns) {
      row.num_rows = static_cast<std::int64_t>(made.num_rows);
    }
  }
  return {rows->size(), [rows, has_counts = recording != nullptr] {
            std::vector<ResultColumn> columns = result_columns(*rows);
            columns.front().owner = rows;
            return has_counts ? columns : pick(std::move(columns), {"table", "what it has"});
          }};
}

constexpr TableInfo kList = {"tables", "Tables of a recording", nullptr, list_tables};

std::vector<std::string> table_names() {
  std::vector<std::string> names;
  for (const TableInfo& table : all_tables()) {
    names.emplace_back(table.name);
  }
  return names;
}

// The table that the first word names; the list if that is a file. Throws kUsage if it is neither.
const TableInfo& named_table(const std::vector<std::string>& words) {
  const std::span<const TableInfo> tables = all_tables();
  const auto found = std::ranges::find(tables, words.front(), &TableInfo::name);
  if (found != tables.end()) {
    return *found;
  }
  std::error_code ignored;
  if (words.size() == 1 && std::filesystem::exists(words.front(), ignored)) {
    return kList;
  }
  const auto meant = nearest(words.front(), table_names());
  throw Error(ErrorKind::kUsage,
              fmt::format("table: there is no table '{}'", printable(words.front())),
              meant ? fmt::format("did you mean '{}'?", *meant) : "gpuwhy table lists them");
}

// Throws kInput where there is none.
ColumnTable table_or_error(const TableInfo& info, const TableResult& made) {
  if (!made.reason.empty()) {
    throw Error(ErrorKind::kInput, made.reason, made.hint);
  }
  return {info.name, made.num_rows, made.columns()};
}

// For a person: a section of the report where one shows the table.
Document shown_table(const TableInfo& info, const std::shared_ptr<const OpenRecording>& recording,
                     const TableOptions& options) {
  if (info.section == nullptr) {
    const ColumnTable table = table_or_error(info, info.make(recording));
    return columns_document(info, table, rows_of(table, options.stage), options.top.rows);
  }
  SectionOptions shown;
  shown.set_top(options.top.rows);
  shown.is_terminal = options.format == "text";
  shown.has_all_parts = true;
  Results metrics = recording->profile.analysis;
  metrics.ranges = fold_numbered(metrics.ranges);  // numbered steps and layers are one row
  return section_document(metrics, {info.section}, shown);
}

// For a script.
void print_rows(const TableInfo& info, const std::shared_ptr<const OpenRecording>& recording,
                const TableOptions& options, Console& console) {
  const TableResult made = info.make(recording);
  const bool may_lack = options.is_json && !made.reason.empty();
  const ColumnTable table = may_lack ? ColumnTable() : table_or_error(info, made);
  std::vector<std::size_t> rows = rows_of(table, options.stage);
  rows.resize(std::min(options.top.is_given ? options.top.rows : SIZE_MAX, rows.size()));
  if (options.is_json) {
    console.out(paged(json_text(info, made, table, rows), options.pages));
  } else {
    write_csv(without_lists(table.columns), rows,
              [&](const std::string& line) { console.out(line); });
  }
}

int run_table(const TableOptions& given, Context& context) {
  TableOptions options = given;
  options.is_json = options.is_json || options.format == "json";
  check_pages(options.pages, options.is_json);
  const TableInfo& info = options.words.empty() ? kList : named_table(options.words);
  const bool is_list = &info == &kList;
  const std::vector<std::string> files(options.words.begin() + (is_list ? 0 : 1),
                                       options.words.end());
  if (!is_list && files.empty()) {
    throw Error(ErrorKind::kUsage, fmt::format("table {}: needs a recording", info.name),
                fmt::format("gpuwhy table {} FILE", info.name));
  }
  options.top.rows = is_list && !options.top.is_given ? SIZE_MAX : options.top.rows;
  const auto recording = files.empty() ? nullptr : read_part(options, files, context);
  if (options.is_json || options.format == "csv") {
    print_rows(info, recording, options, context.console);
  } else {
    const Document document = shown_table(info, recording, options);
    context.console.out(options.format == "md" ? markdown_text(document)
                                               : terminal_text(document, context.console.form()));
  }
  return kExitOk;
}

}  // namespace

Command table_command() {
  auto options = std::make_shared<TableOptions>();
  Command command;
  command.name = "table";
  command.summary = "Print one table of a recording: kernels, layers, ranges, steps, ...";
  command.options = {
      {"TABLE",
       "",
       "Name of a table, then the recording (several: ranks of one job); without a name: the list",
       &options->words,
       {},
       table_names},
      {"--stage", "NAME", "Only rows of this stage; also startup, steady or ending",
       &options->stage},
      {"--top", "N", "Rows to print, or all; csv and json have all if it is not given",
       &options->top},
      one_of({"text", "md", "csv", "json"},
             {"--format", "FORMAT", "text, md, csv or json; csv and json have all columns",
              &options->format}),
      json_option(options->is_json),
      ncu_option(options->recording.ncu),
  };
  add_page_options(command, options->pages);
  add_model_options(command, options->model, options->recording);
  add_request_options(command, options->recording);
  add_recording_options(command, options->recording);
  command.examples =
      "  gpuwhy table run.sqlite\n"
      "  gpuwhy table kernels run.sqlite --stage decode\n"
      "  gpuwhy table layers run.sqlite --model llama_3_1_8b\n"
      "  gpuwhy table launches run.sqlite --format csv > launches.csv\n";
  command.run = [options](Context& context) { return run_table(*options, context); };
  return command;
}

}  // namespace gpuwhy
